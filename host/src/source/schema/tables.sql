-- One row of JSON for each published table, in one statement: everything is seen under one snapshot.
-- $1 is the publication's exact name. Needs no right beyond CONNECT; reads catalogues only.
-- Expressions (defaults, filters, predicates) hold literals that may be personal: they are looked at here and never sent.
WITH RECURSIVE
published AS MATERIALIZED (
    -- The view tells what the server will really send: partitions or their root, with schema and all-tables memberships
    -- resolved. Names are compared as text: a cast to "name" would cut a long one and match another.
    SELECT relation.oid AS relid, view.rowfilter IS NOT NULL AS row_filter,
           EXISTS (SELECT FROM pg_catalog.pg_publication_rel member
                   JOIN pg_catalog.pg_publication publication ON publication.oid = member.prpubid
                   WHERE member.prrelid = relation.oid AND publication.pubname::text = $1
                     AND member.prattrs IS NOT NULL) AS column_list
    FROM pg_catalog.pg_publication_tables view
    JOIN pg_catalog.pg_namespace namespace ON namespace.nspname = view.schemaname
    JOIN pg_catalog.pg_class relation ON relation.relnamespace = namespace.oid AND relation.relname = view.tablename
    WHERE view.pubname::text = $1
),
-- Every domain with the type below it, and whether it or a domain on the way refuses NULL.
domain_step AS (
    SELECT oid AS domain, typbasetype AS below, typnotnull AS not_null FROM pg_catalog.pg_type WHERE typtype = 'd'
    UNION ALL
    SELECT step.domain, type.typbasetype, step.not_null OR type.typnotnull
    FROM domain_step step JOIN pg_catalog.pg_type type ON type.oid = step.below WHERE type.typtype = 'd'
),
domain AS MATERIALIZED (
    SELECT step.domain, step.below, step.not_null
    FROM domain_step step JOIN pg_catalog.pg_type type ON type.oid = step.below WHERE type.typtype <> 'd'
),
-- The index that identifies old rows, as the server chooses it: a deferrable or unfinished one does not count.
identity AS MATERIALIZED (
    SELECT published.relid, entry.indexrelid,
           entry.indisvalid AND entry.indisunique AND entry.indimmediate AND entry.indpred IS NULL AS usable,
           entry.indimmediate AS immediate, entry.indisvalid AS valid, entry.indkey::int2[] AS key, entry.indnkeyatts AS width
    FROM published
    JOIN pg_catalog.pg_class relation ON relation.oid = published.relid
    JOIN pg_catalog.pg_index entry ON entry.indrelid = published.relid
    WHERE (relation.relreplident = 'd' AND entry.indisprimary) OR (relation.relreplident = 'i' AND entry.indisreplident)
),
-- Unique indexes and exclusion constraints. Columns inside an expression or a predicate are known by their dependency.
unique_index AS MATERIALIZED (
    SELECT entry.indrelid AS relid, entry.indexrelid, name.relname AS name, entry.indisvalid AS valid,
           entry.indimmediate AS immediate, entry.indisexclusion AS exclusion, entry.indisprimary AS "primary",
           entry.indpred IS NOT NULL AS partial, entry.indexprs IS NOT NULL AS expressions,
           entry.indnullsnotdistinct AS nulls_not_distinct,
           ARRAY(SELECT part.attnum FROM unnest(entry.indkey::int2[]) WITH ORDINALITY part (attnum, place)
                 WHERE part.place <= entry.indnkeyatts AND part.attnum > 0 ORDER BY part.place) AS key,
           ARRAY(SELECT DISTINCT depend.refobjsubid::int2 FROM pg_catalog.pg_depend depend
                 WHERE depend.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND depend.objid = entry.indexrelid
                   AND depend.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                   AND depend.refobjid = entry.indrelid AND depend.refobjsubid > 0
                   AND NOT depend.refobjsubid = ANY (entry.indkey::int2[])) AS inner_columns
    FROM published
    JOIN pg_catalog.pg_index entry ON entry.indrelid = published.relid
    JOIN pg_catalog.pg_class name ON name.oid = entry.indexrelid
    WHERE entry.indisunique OR entry.indisexclusion
),
-- Foreign keys that a published table has. Those that point at it from outside the job stay at the source.
foreign_key AS MATERIALIZED (
    SELECT edge.conrelid AS relid, edge.oid, edge.conname AS name, edge.confrelid, edge.conkey, edge.confkey,
           edge.condeferrable AS "deferrable", EXISTS (SELECT FROM published WHERE published.relid = edge.confrelid) AS inside
    FROM published JOIN pg_catalog.pg_constraint edge ON edge.conrelid = published.relid
    WHERE edge.contype = 'f' AND edge.conparentid = 0
),
-- Columns that a generated column is computed from: what its expression depends on, the column itself left out.
generated_input AS MATERIALIZED (
    SELECT initial.adrelid AS relid, initial.adnum AS attnum, depend.refobjsubid AS input
    FROM published
    JOIN pg_catalog.pg_attrdef initial ON initial.adrelid = published.relid
    JOIN pg_catalog.pg_depend depend ON depend.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass
        AND depend.objid = initial.oid AND depend.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
        AND depend.refobjid = initial.adrelid AND depend.refobjsubid <> initial.adnum AND depend.refobjsubid > 0
)
SELECT pg_catalog.json_build_object(
    'schema', namespace.nspname, 'name', relation.relname, 'relation_id', relation.oid::bigint,
    'kind', relation.relkind, 'is_partition', relation.relispartition, 'persistence', relation.relpersistence,
    'row_filter', published.row_filter, 'column_list', published.column_list,
    'row_security', pg_catalog.row_security_active(relation.oid), 'replica_identity', relation.relreplident,
    'readable', pg_catalog.has_table_privilege(relation.oid, 'SELECT'),
    'estimated_rows', greatest(relation.reltuples, 0)::numeric::bigint,
    'blocks', CASE WHEN relation.relkind = 'r' THEN pg_catalog.pg_relation_size(relation.oid)
                   / pg_catalog.current_setting('block_size')::bigint ELSE 0 END,
    'identity_index', (SELECT pg_catalog.json_build_object(
            'name', index.relname, 'usable', identity.usable, 'immediate', identity.immediate, 'valid', identity.valid)
        FROM identity JOIN pg_catalog.pg_class index ON index.oid = identity.indexrelid WHERE identity.relid = relation.oid),
    'parents', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(space.nspname, parent.relname) ORDER BY link.inhseqno)
        FROM pg_catalog.pg_inherits link JOIN pg_catalog.pg_class parent ON parent.oid = link.inhparent
        JOIN pg_catalog.pg_namespace space ON space.oid = parent.relnamespace WHERE link.inhrelid = relation.oid),
    'children', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(space.nspname, child.relname) ORDER BY child.oid)
        FROM pg_catalog.pg_inherits link JOIN pg_catalog.pg_class child ON child.oid = link.inhrelid
        JOIN pg_catalog.pg_namespace space ON space.oid = child.relnamespace WHERE link.inhparent = relation.oid),
    'triggers', (SELECT pg_catalog.json_agg(tgname ORDER BY tgname) FROM pg_catalog.pg_trigger
        WHERE tgrelid = relation.oid AND NOT tgisinternal),
    'columns', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
            'name', attribute.attname, 'type_oid', attribute.atttypid::bigint, 'type_modifier', attribute.atttypmod,
            -- With modifier -1 rather than NULL: that writes bpchar and "bit", which a cast does not cut to one character.
            'type_name', pg_catalog.format_type(attribute.atttypid, -1),
            'base_type_name', pg_catalog.format_type(coalesce(domain.below, attribute.atttypid), -1),
            'catalog_type', type.typname, 'base_catalog_type', base.typname, 'category', base.typcategory,
            'not_null', attribute.attnotnull OR coalesce(domain.not_null, false),
            'identity', relation.relreplident = 'f' OR EXISTS (SELECT FROM identity
                WHERE identity.relid = relation.oid AND identity.usable AND relation.relreplident IN ('d', 'i')
                  AND attribute.attnum = ANY (identity.key[0:identity.width - 1])),
            'unique', EXISTS (SELECT FROM unique_index WHERE unique_index.relid = relation.oid
                AND (attribute.attnum = ANY (unique_index.key)
                     OR unique_index.expressions AND attribute.attnum = ANY (unique_index.inner_columns))),
            'generated', attribute.attgenerated, 'always_identity', attribute.attidentity = 'a',
            'auto_identity', attribute.attidentity <> '',
            'inputs', (SELECT pg_catalog.json_agg(input.attname ORDER BY input.attnum) FROM generated_input
                JOIN pg_catalog.pg_attribute input ON input.attrelid = relation.oid AND input.attnum = generated_input.input
                WHERE generated_input.relid = relation.oid AND generated_input.attnum = attribute.attnum),
            'toastable', attribute.attstorage <> 'p',
            'readable', pg_catalog.has_column_privilege(relation.oid, attribute.attnum, 'SELECT'),
            'default', CASE WHEN attribute.attgenerated <> '' OR initial.adbin IS NULL THEN 'none'
                -- A literal is a Const node other than the name of a sequence; what it says is not looked at.
                WHEN pg_catalog.replace(pg_catalog.pg_get_expr(initial.adbin, initial.adrelid), 'nextval(''', '') ~ '[''0-9]'
                    AND pg_catalog.pg_get_expr(initial.adbin, initial.adrelid) !~ '^nextval\(''[^()]*''::regclass\)$'
                    THEN 'literal'
                ELSE 'computed' END
        ) ORDER BY attribute.attnum)
        FROM pg_catalog.pg_attribute attribute
        JOIN pg_catalog.pg_type type ON type.oid = attribute.atttypid
        LEFT JOIN domain ON domain.domain = attribute.atttypid
        JOIN pg_catalog.pg_type base ON base.oid = coalesce(domain.below, attribute.atttypid)
        LEFT JOIN pg_catalog.pg_attrdef initial ON initial.adrelid = attribute.attrelid AND initial.adnum = attribute.attnum
        WHERE attribute.attrelid = relation.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped),
    'unique_indexes', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
            'name', unique_index.name, 'valid', unique_index.valid, 'immediate', unique_index.immediate,
            'exclusion', unique_index.exclusion, 'primary', unique_index."primary", 'partial', unique_index.partial,
            'nulls_not_distinct', unique_index.nulls_not_distinct, 'expressions', unique_index.expressions,
            'columns', ARRAY(SELECT attribute.attname FROM unnest(unique_index.key) WITH ORDINALITY part (attnum, place)
                JOIN pg_catalog.pg_attribute attribute ON attribute.attrelid = relation.oid AND attribute.attnum = part.attnum
                ORDER BY part.place),
            'inner_columns', ARRAY(SELECT attribute.attname FROM pg_catalog.pg_attribute attribute
                WHERE attribute.attrelid = relation.oid AND attribute.attnum = ANY (unique_index.inner_columns)
                ORDER BY attribute.attnum)
        ) ORDER BY unique_index.indexrelid)
        FROM unique_index WHERE unique_index.relid = relation.oid),
    'checks', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
            'name', rule.conname,
            'columns', ARRAY(SELECT attribute.attname FROM pg_catalog.pg_attribute attribute
                WHERE attribute.attrelid = relation.oid AND attribute.attnum = ANY (rule.conkey) ORDER BY attribute.attnum)
        ) ORDER BY rule.conname)
        FROM pg_catalog.pg_constraint rule WHERE rule.conrelid = relation.oid AND rule.contype = 'c'),
    'foreign_keys', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
            'name', foreign_key.name, 'constraint_id', foreign_key.oid::bigint, 'inside', foreign_key.inside,
            'deferrable', foreign_key."deferrable", 'referenced', pg_catalog.json_build_array(space.nspname, other.relname),
            'columns', ARRAY(SELECT attribute.attname FROM unnest(foreign_key.conkey) WITH ORDINALITY part (attnum, place)
                JOIN pg_catalog.pg_attribute attribute ON attribute.attrelid = relation.oid AND attribute.attnum = part.attnum
                ORDER BY part.place),
            'referenced_columns', ARRAY(SELECT attribute.attname FROM unnest(foreign_key.confkey) WITH ORDINALITY part (attnum, place)
                JOIN pg_catalog.pg_attribute attribute ON attribute.attrelid = other.oid AND attribute.attnum = part.attnum
                ORDER BY part.place)
        ) ORDER BY foreign_key.name)
        FROM foreign_key JOIN pg_catalog.pg_class other ON other.oid = foreign_key.confrelid
        JOIN pg_catalog.pg_namespace space ON space.oid = other.relnamespace WHERE foreign_key.relid = relation.oid)
) AS "table"
FROM published
JOIN pg_catalog.pg_class relation ON relation.oid = published.relid
JOIN pg_catalog.pg_namespace namespace ON namespace.oid = relation.relnamespace
ORDER BY namespace.nspname COLLATE pg_catalog."C", relation.relname COLLATE pg_catalog."C"

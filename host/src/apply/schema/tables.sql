-- One row of JSON for each of the named tables that exists on the target. $1: names as JSON, [["schema","table"], ...].
WITH wanted AS MATERIALIZED (
    SELECT relation.oid AS relid
    FROM pg_catalog.json_array_elements($1::pg_catalog.json) pair
    JOIN pg_catalog.pg_namespace namespace ON namespace.nspname::text = pair ->> 0
    JOIN pg_catalog.pg_class relation ON relation.relnamespace = namespace.oid AND relation.relname::text = pair ->> 1
)
SELECT pg_catalog.json_build_object(
    'schema', namespace.nspname, 'name', relation.relname, 'ordinary', relation.relkind = 'r' AND NOT relation.relispartition,
    'unlogged', relation.relpersistence <> 'p', 'rules', relation.relhasrules,
    'row_security', pg_catalog.row_security_active(relation.oid),
    'missing_rights', ARRAY(SELECT wish FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) wish
        WHERE NOT pg_catalog.has_table_privilege(relation.oid, wish)),
    -- Apply runs as session_replication_role = replica: only these still fire.
    'firing_triggers', ARRAY(SELECT tgname FROM pg_catalog.pg_trigger
        WHERE tgrelid = relation.oid AND NOT tgisinternal AND tgenabled IN ('A', 'R') ORDER BY tgname),
    'columns', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
            'name', attribute.attname, 'type_name', pg_catalog.format_type(attribute.atttypid, -1),
            'type_modifier', attribute.atttypmod, 'not_null', attribute.attnotnull,
            'generated', attribute.attgenerated <> '', 'always_identity', attribute.attidentity = 'a',
            'has_default', attribute.atthasdef AND attribute.attgenerated = '' OR attribute.attidentity <> ''
        ) ORDER BY attribute.attnum)
        FROM pg_catalog.pg_attribute attribute
        WHERE attribute.attrelid = relation.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped),
    'unique_keys', (SELECT pg_catalog.json_agg(ARRAY(SELECT attribute.attname
            FROM unnest(entry.indkey::int2[]) WITH ORDINALITY part (attnum, place)
            JOIN pg_catalog.pg_attribute attribute ON attribute.attrelid = relation.oid AND attribute.attnum = part.attnum
            WHERE part.place <= entry.indnkeyatts ORDER BY part.place) ORDER BY entry.indexrelid)
        FROM pg_catalog.pg_index entry WHERE entry.indrelid = relation.oid AND entry.indisunique AND entry.indisvalid
            AND entry.indimmediate AND entry.indpred IS NULL AND entry.indexprs IS NULL)
) AS "table"
FROM wanted
JOIN pg_catalog.pg_class relation ON relation.oid = wanted.relid
JOIN pg_catalog.pg_namespace namespace ON namespace.oid = relation.relnamespace

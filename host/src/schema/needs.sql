-- Everything outside the job's tables that their definitions refer to, by following pg_depend. $1: relation ids as JSON.
-- What belongs to an extension stands for the extension; functions are named and not followed, for they are not copied.
WITH RECURSIVE
job AS MATERIALIZED (
    SELECT (element #>> '{}')::pg_catalog.oid AS relid FROM pg_catalog.json_array_elements($1::pg_catalog.json) element
),
needed AS (
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass::oid AS classid, relid AS objid FROM job
    UNION SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass, initial.oid
        FROM job JOIN pg_catalog.pg_attrdef initial ON initial.adrelid = job.relid
    UNION SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, rule.oid
        FROM job JOIN pg_catalog.pg_constraint rule ON rule.conrelid = job.relid AND rule.contype <> 'f'
    UNION SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, entry.indexrelid
        FROM job JOIN pg_catalog.pg_index entry ON entry.indrelid = job.relid
    UNION
    SELECT edge.classid, edge.objid
    FROM needed CROSS JOIN LATERAL (
        SELECT depend.refclassid AS classid, depend.refobjid AS objid
        FROM pg_catalog.pg_depend depend WHERE depend.classid = needed.classid AND depend.objid = needed.objid
        -- A composite type's columns hang on its pg_class entry, a domain's checks on their own entries.
        UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, type.typrelid
        FROM pg_catalog.pg_type type WHERE needed.classid = 'pg_catalog.pg_type'::pg_catalog.regclass
            AND type.oid = needed.objid AND type.typtype = 'c'
        UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, rule.oid
        FROM pg_catalog.pg_constraint rule WHERE needed.classid = 'pg_catalog.pg_type'::pg_catalog.regclass
            AND rule.contypid = needed.objid AND needed.objid <> 0
    ) edge
    WHERE needed.classid <> 'pg_catalog.pg_proc'::pg_catalog.regclass
      -- Another table (by inheritance, or as a row type) is where the job ends.
      AND (edge.classid <> 'pg_catalog.pg_class'::pg_catalog.regclass OR EXISTS (
            SELECT FROM pg_catalog.pg_class relation WHERE relation.oid = edge.objid AND relation.relkind IN ('c', 'S')))
      AND (needed.classid = 'pg_catalog.pg_extension'::pg_catalog.regclass OR NOT EXISTS (
            SELECT FROM pg_catalog.pg_depend member WHERE member.classid = needed.classid
                AND member.objid = needed.objid AND member.deptype = 'e')
          OR edge.classid = 'pg_catalog.pg_extension'::pg_catalog.regclass)
),
alone AS MATERIALIZED (
    SELECT needed.classid, needed.objid FROM needed
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_depend member WHERE member.classid = needed.classid
        AND member.objid = needed.objid AND member.deptype = 'e')
)
SELECT pg_catalog.json_build_object(
    'extensions', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(extension.extname, namespace.nspname) ORDER BY extension.oid)
        FROM needed JOIN pg_catalog.pg_extension extension ON extension.oid = needed.objid
        JOIN pg_catalog.pg_namespace namespace ON namespace.oid = extension.extnamespace
        WHERE needed.classid = 'pg_catalog.pg_extension'::pg_catalog.regclass),
    'schemas', (SELECT pg_catalog.json_agg(DISTINCT space) FROM (
        SELECT namespace.nspname::text AS space FROM needed
            JOIN pg_catalog.pg_extension extension ON extension.oid = needed.objid
            JOIN pg_catalog.pg_namespace namespace ON namespace.oid = extension.extnamespace
            WHERE needed.classid = 'pg_catalog.pg_extension'::pg_catalog.regclass
        UNION SELECT namespace.nspname FROM alone JOIN pg_catalog.pg_class relation ON relation.oid = alone.objid
            JOIN pg_catalog.pg_namespace namespace ON namespace.oid = relation.relnamespace
            WHERE alone.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
        UNION SELECT namespace.nspname FROM alone JOIN pg_catalog.pg_type type ON type.oid = alone.objid
            JOIN pg_catalog.pg_namespace namespace ON namespace.oid = type.typnamespace
            WHERE alone.classid = 'pg_catalog.pg_type'::pg_catalog.regclass) spaces),
    'types', (SELECT pg_catalog.json_agg(alone.objid::bigint ORDER BY alone.objid) FROM alone
        WHERE alone.classid = 'pg_catalog.pg_type'::pg_catalog.regclass),
    -- Sequences that a default draws from. Those that a column owns come with their table as well.
    'sequences', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(relation.oid::bigint, namespace.nspname, relation.relname) ORDER BY relation.oid)
        FROM (SELECT alone.objid AS relid FROM alone WHERE alone.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
              UNION SELECT depend.objid FROM job JOIN pg_catalog.pg_depend depend ON depend.refobjid = job.relid
                AND depend.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                AND depend.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND depend.deptype IN ('a', 'i')) found
        JOIN pg_catalog.pg_class relation ON relation.oid = found.relid AND relation.relkind = 'S'
        JOIN pg_catalog.pg_namespace namespace ON namespace.oid = relation.relnamespace),
    -- Functions, collations, operator classes ...: they must be on the target already.
    'others', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(known.type, known.identity) ORDER BY known.type, known.identity)
        FROM alone CROSS JOIN LATERAL pg_catalog.pg_identify_object(alone.classid, alone.objid, 0) known
        WHERE alone.classid NOT IN ('pg_catalog.pg_class'::pg_catalog.regclass, 'pg_catalog.pg_type'::pg_catalog.regclass,
            'pg_catalog.pg_attrdef'::pg_catalog.regclass, 'pg_catalog.pg_constraint'::pg_catalog.regclass,
            'pg_catalog.pg_namespace'::pg_catalog.regclass, 'pg_catalog.pg_extension'::pg_catalog.regclass))
) AS needs

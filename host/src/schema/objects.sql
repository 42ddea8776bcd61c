-- What hangs on the job's tables and what pg_dump writes of it, each by catalogue and id: the ids that pg_dump prints beside
-- its statements. $1: relation ids as JSON. No expression is read.
WITH job AS MATERIALIZED (
    SELECT relation.oid AS relid, namespace.nspname AS space, relation.relname AS name, relation.relrowsecurity AS row_security
    FROM pg_catalog.json_array_elements($1::pg_catalog.json) element
    JOIN pg_catalog.pg_class relation ON relation.oid = (element #>> '{}')::pg_catalog.oid
    JOIN pg_catalog.pg_namespace namespace ON namespace.oid = relation.relnamespace
)
SELECT pg_catalog.json_build_object('class', found.class::oid::bigint, 'id', found.id::bigint, 'kind', found.kind,
    'schema', job.space, 'table', job.name, 'name', found.name, 'other', found.other::bigint) AS object
FROM job CROSS JOIN LATERAL (
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass AS class, job.relid AS id, 'table' AS kind, job.name::text AS name, 0 AS other
    UNION ALL SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass, initial.oid,
        CASE WHEN attribute.attgenerated = '' THEN 'default' ELSE 'generated' END, attribute.attname, 0
    FROM pg_catalog.pg_attrdef initial JOIN pg_catalog.pg_attribute attribute
        ON attribute.attrelid = initial.adrelid AND attribute.attnum = initial.adnum
    WHERE initial.adrelid = job.relid
    UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, rule.oid,
        CASE rule.contype WHEN 'f' THEN 'foreign_key' ELSE 'constraint' END, rule.conname, rule.confrelid
    FROM pg_catalog.pg_constraint rule WHERE rule.conrelid = job.relid AND rule.contype IN ('c', 'p', 'u', 'x', 'f', 'n')
    UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, entry.indexrelid, 'index', relation.relname, 0
    FROM pg_catalog.pg_index entry JOIN pg_catalog.pg_class relation ON relation.oid = entry.indexrelid
    WHERE entry.indrelid = job.relid
    UNION ALL SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, oid, 'trigger', tgname, 0
    FROM pg_catalog.pg_trigger WHERE tgrelid = job.relid AND NOT tgisinternal
    UNION ALL SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, oid, 'rule', rulename, 0
    FROM pg_catalog.pg_rewrite WHERE ev_class = job.relid
    UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, oid, 'policy', polname, 0
    FROM pg_catalog.pg_policy WHERE polrelid = job.relid
    UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, job.relid, 'row_security', 'row level security', 0
    WHERE job.row_security
    UNION ALL SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, oid, 'statistics', stxname, 0
    FROM pg_catalog.pg_statistic_ext WHERE stxrelid = job.relid
) found
ORDER BY job.space, job.name, found.kind, found.name, found.id

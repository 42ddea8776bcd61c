-- What a job needs of the target's server, as one row of JSON.
SELECT pg_catalog.json_build_object(
    'system', (SELECT system_identifier::text FROM pg_catalog.pg_control_system()),
    'database', pg_catalog.current_database(), 'encoding', pg_catalog.pg_encoding_to_char(database.encoding),
    'standby', pg_catalog.pg_is_in_recovery(), 'role', current_user, 'superuser', role.rolsuper,
    'backend', pg_catalog.pg_backend_pid(),
    'may_create', pg_catalog.has_database_privilege(database.oid, 'CREATE'),
    'may_replica', role.rolsuper OR pg_catalog.has_parameter_privilege('session_replication_role', 'SET'),
    'installed', pg_catalog.to_regclass('pgveil.job') IS NOT NULL,
    'may_record', coalesce(pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('pgveil'), 'CREATE')
        AND pg_catalog.has_table_privilege(pg_catalog.to_regclass('pgveil.job'), 'SELECT, INSERT, UPDATE, DELETE'), false),
    'connections', pg_catalog.current_setting('max_connections')::int
        - CASE WHEN role.rolsuper THEN 0 ELSE pg_catalog.current_setting('superuser_reserved_connections')::int
            + coalesce(pg_catalog.current_setting('reserved_connections', true)::int, 0) END,
    'connections_used', coalesce((SELECT sum(numbackends) FROM pg_catalog.pg_stat_database), 0),
    'schemas', ARRAY(SELECT nspname FROM pg_catalog.pg_namespace WHERE pg_catalog.has_schema_privilege(oid, 'CREATE')),
    'all_schemas', ARRAY(SELECT nspname FROM pg_catalog.pg_namespace)
) AS facts
FROM pg_catalog.pg_database database, pg_catalog.pg_roles role
WHERE database.datname = pg_catalog.current_database() AND role.rolname = current_user

-- What a job needs of the source's server, as one row of JSON. $1: the slot's name. Settings and counts only.
SELECT pg_catalog.json_build_object(
    'system', (SELECT system_identifier::text FROM pg_catalog.pg_control_system()),
    'database', pg_catalog.current_database(), 'encoding', pg_catalog.pg_encoding_to_char(database.encoding),
    'standby', pg_catalog.pg_is_in_recovery(), 'role', current_user,
    'backend', pg_catalog.pg_backend_pid(),
    'replication', role.rolsuper OR role.rolreplication
        -- Amazon's service keeps the attribute to itself and lends it by membership.
        OR EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'rds_replication' AND pg_catalog.pg_has_role(oid, 'MEMBER')),
    'wal_level', pg_catalog.current_setting('wal_level'),
    'slots', pg_catalog.current_setting('max_replication_slots')::int,
    'slots_used', (SELECT count(*) FROM pg_catalog.pg_replication_slots),
    'senders', pg_catalog.current_setting('max_wal_senders')::int,
    'senders_used', (SELECT count(*) FROM pg_catalog.pg_stat_replication),
    'connections', pg_catalog.current_setting('max_connections')::int
        - CASE WHEN role.rolsuper THEN 0 ELSE pg_catalog.current_setting('superuser_reserved_connections')::int
            + coalesce(pg_catalog.current_setting('reserved_connections', true)::int, 0) END,
    'connections_used', coalesce((SELECT sum(numbackends) FROM pg_catalog.pg_stat_database), 0),
    'wal_sender_timeout_ms', (SELECT setting::bigint FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout'),
    'wal_keep_mb', (SELECT setting::bigint FROM pg_catalog.pg_settings WHERE name = 'max_slot_wal_keep_size'),
    'idle_slot_timeout_s', coalesce((SELECT setting::bigint FROM pg_catalog.pg_settings WHERE name = 'idle_replication_slot_timeout'), 0),
    'slot', (SELECT pg_catalog.json_build_object('plugin', slot.plugin, 'database', slot.database, 'active', slot.active,
            'temporary', slot.temporary, 'wal_status', slot.wal_status,
            'retained_bytes', CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL
                ELSE pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), slot.restart_lsn)::bigint END)
        FROM pg_catalog.pg_replication_slots slot WHERE slot.slot_name::text = $1)
) AS facts
FROM pg_catalog.pg_database database, pg_catalog.pg_roles role
WHERE database.datname = pg_catalog.current_database() AND role.rolname = current_user

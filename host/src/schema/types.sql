-- The definitions of types, one row of JSON each. $1: type ids as JSON. Every name inside a definition is qualified and quoted
-- by the server, which holds under an empty search_path. Defaults of domains are not read: they may be personal.
SELECT pg_catalog.json_build_object(
    'id', type.oid::bigint, 'schema', namespace.nspname, 'name', type.typname,
    'kind', CASE WHEN type.typtype = 'c' AND relation.relkind <> 'c' THEN 'row'
                 WHEN type.typtype = 'b' AND type.typelem <> 0 AND type.typcategory = 'A' THEN 'array'
                 ELSE type.typtype::text END,
    'needs', ARRAY(SELECT depend.refobjid::bigint FROM pg_catalog.pg_depend depend
        WHERE depend.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND depend.refobjid <> type.oid
          AND (depend.classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND depend.objid = type.oid
               OR depend.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND type.typrelid <> 0 AND depend.objid = type.typrelid)
        ORDER BY 1),
    'labels', ARRAY(SELECT label.enumlabel FROM pg_catalog.pg_enum label WHERE label.enumtypid = type.oid ORDER BY label.enumsortorder),
    'domain', CASE WHEN type.typtype = 'd' THEN pg_catalog.json_build_object(
        'base', pg_catalog.format_type(type.typbasetype, type.typtypmod),
        'collation', (SELECT pg_catalog.quote_ident(space.nspname) || '.' || pg_catalog.quote_ident(collation_.collname)
            FROM pg_catalog.pg_collation collation_ JOIN pg_catalog.pg_namespace space ON space.oid = collation_.collnamespace
            JOIN pg_catalog.pg_type below ON below.oid = type.typbasetype
            WHERE collation_.oid = type.typcollation AND type.typcollation <> below.typcollation),
        'not_null', type.typnotnull, 'has_default', type.typdefault IS NOT NULL,
        'checks', ARRAY(SELECT pg_catalog.json_build_array(rule.conname, pg_catalog.pg_get_constraintdef(rule.oid))
            FROM pg_catalog.pg_constraint rule WHERE rule.contypid = type.oid AND rule.contype = 'c' ORDER BY rule.conname)) END,
    'attributes', ARRAY(SELECT pg_catalog.json_build_array(attribute.attname,
            pg_catalog.format_type(attribute.atttypid, attribute.atttypmod),
            (SELECT pg_catalog.quote_ident(space.nspname) || '.' || pg_catalog.quote_ident(collation_.collname)
             FROM pg_catalog.pg_collation collation_ JOIN pg_catalog.pg_namespace space ON space.oid = collation_.collnamespace
             JOIN pg_catalog.pg_type own ON own.oid = attribute.atttypid
             WHERE collation_.oid = attribute.attcollation AND attribute.attcollation <> own.typcollation))
        FROM pg_catalog.pg_attribute attribute
        WHERE type.typtype = 'c' AND attribute.attrelid = type.typrelid AND attribute.attnum > 0 AND NOT attribute.attisdropped
        ORDER BY attribute.attnum),
    'range', (SELECT pg_catalog.json_build_object(
            'subtype', pg_catalog.format_type(range.rngsubtype, NULL),
            'operator_class', CASE WHEN NOT class.opcdefault THEN
                (SELECT pg_catalog.quote_ident(space.nspname) FROM pg_catalog.pg_namespace space WHERE space.oid = class.opcnamespace)
                || '.' || pg_catalog.quote_ident(class.opcname) END,
            'collation', (SELECT pg_catalog.quote_ident(space.nspname) || '.' || pg_catalog.quote_ident(collation_.collname)
                FROM pg_catalog.pg_collation collation_ JOIN pg_catalog.pg_namespace space ON space.oid = collation_.collnamespace
                JOIN pg_catalog.pg_type below ON below.oid = range.rngsubtype
                WHERE collation_.oid = range.rngcollation AND range.rngcollation <> below.typcollation),
            'canonical', range.rngcanonical <> 0,
            'difference', CASE WHEN range.rngsubdiff <> 0 THEN (SELECT pg_catalog.quote_ident(space.nspname) || '.'
                || pg_catalog.quote_ident(routine.proname) FROM pg_catalog.pg_proc routine
                JOIN pg_catalog.pg_namespace space ON space.oid = routine.pronamespace WHERE routine.oid = range.rngsubdiff) END,
            'multirange', (SELECT pg_catalog.json_build_array(space.nspname, multi.typname) FROM pg_catalog.pg_type multi
                JOIN pg_catalog.pg_namespace space ON space.oid = multi.typnamespace WHERE multi.oid = range.rngmultitypid))
        FROM pg_catalog.pg_range range JOIN pg_catalog.pg_opclass class ON class.oid = range.rngsubopc
        WHERE range.rngtypid = type.oid)
) AS "type"
FROM pg_catalog.json_array_elements($1::pg_catalog.json) element
JOIN pg_catalog.pg_type type ON type.oid = (element #>> '{}')::pg_catalog.oid
JOIN pg_catalog.pg_namespace namespace ON namespace.oid = type.typnamespace
LEFT JOIN pg_catalog.pg_class relation ON relation.oid = type.typrelid
ORDER BY type.oid

-- The publication as the server holds it, one row of JSON; $1 is its exact name. "publish_generated_columns" came with 18:
-- the row is read as JSON so that one text serves every version.
SELECT pg_catalog.json_build_object(
    'all_tables', publication.puballtables, 'insert', publication.pubinsert, 'update', publication.pubupdate,
    'delete', publication.pubdelete, 'truncate', publication.pubtruncate, 'via_root', publication.pubviaroot,
    'generated_columns', coalesce(pg_catalog.to_json(publication) ->> 'pubgencols', 'n'),
    'whole_schemas', EXISTS (SELECT FROM pg_catalog.pg_publication_namespace WHERE pnpubid = publication.oid)
) AS publication
FROM pg_catalog.pg_publication publication
WHERE publication.pubname::text = $1

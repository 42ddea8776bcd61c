-- What was run on a PostgreSQL 15 cluster with wal_level=logical to record `pgoutput.hex` and `copy_text.tsv`:
--   psql -X --set=ON_ERROR_STOP=1 --quiet --no-align --tuples-only --file=record.sql postgres
-- Each line of `pgoutput.hex` is one message. A new recording has other LSNs, object identifiers, xids and times; the snapshots change with it.
set client_min_messages = warning;
create schema "Q_"" . S";
create type "Q_"" . S"."Größe" as enum ('klein', 'groß');
create domain public.dpos as int check (value > 0);
create table public.users (id int primary key, email varchar(40), amount numeric(6,2), tags public.dpos[], level public.dpos, size "Q_"" . S"."Größe");
create table "Q_"" . S"."T "" ." ("c"" x" text primary key, "größe 📦" text, "line
break" bool);
create table public.toasted (id int primary key, note text, big text);
create table public.toasted_full (id int primary key, note text, big text);
create table public.toasted_key (big text primary key, note text);
create table public.chosen (project int not null, "group" int not null, note text);
create table public.nothing (note text);
create table public.no_columns ();
create unique index chosen_identity on public.chosen (project, "group");
alter table public.toasted alter big set storage external;
alter table public.toasted_full alter big set storage external, replica identity full;
alter table public.toasted_key alter big set storage external;
alter table public.chosen replica identity using index chosen_identity;
alter table public.nothing replica identity nothing;
insert into public.toasted values (1, 'before', repeat('x', 2100));
insert into public.toasted_full values (1, null, repeat('x', 2100));
insert into public.toasted_key values (repeat('x', 2100), 'before');
create publication inserts_only for table public.nothing with (publish = 'insert');
create publication recorded for table public.users, "Q_"" . S"."T "" .", public.toasted, public.toasted_full,
    public.toasted_key, public.chosen, public.no_columns;
select pg_replication_origin_create('upstream ü') as created \gset
select pg_create_logical_replication_slot('recorder', 'pgoutput') as slot \gset

-- Types, NULL, empty string, special numbers.
insert into public.users values (1, 'ann@example.org', 'NaN', '[0:1]={7,8}', 3, 'groß'), (2, '', null, null, null, null);
-- Names.
insert into "Q_"" . S"."T "" ." values (E'tab\tnewline\nback\\slash', '📦', true);
-- Update without an old tuple, with a key, with a whole old row; unchanged values of each.
begin;
update public.toasted set note = 'after';
update public.toasted set id = 2;
update public.toasted_full set note = 'after';
update public.toasted_key set note = 'after';
delete from public.toasted;
delete from public.toasted_full where id = 3;
commit;
-- A chosen index, and a table without identity that only inserts.
begin;
insert into public.chosen values (1, 2, 'a');
update public.chosen set "group" = 3;
delete from public.chosen;
insert into public.nothing values ('n');
insert into public.no_columns default values;
commit;
delete from public.users where id = 2;
alter table public.users replica identity full;
delete from public.users;
truncate public.users, public.chosen;
truncate public.users, public.toasted restart identity cascade;
-- Origin.
select pg_replication_origin_session_setup('upstream ü') as setup \gset
begin;
select pg_replication_origin_xact_setup('1/2345678', '2020-02-02 02:02:02+00') as setup \gset
insert into "Q_"" . S"."T "" ." values ('from upstream', null, false);
commit;
select pg_replication_origin_session_reset() as reset \gset
-- Messages, on their own and inside a transaction.
select pg_logical_emit_message(false, 'heart beat', '\x00ff'::bytea) as lsn \gset
begin;
select pg_logical_emit_message(true, 'größe', 'in a transaction') as lsn \gset
insert into public.users (id) values (3);
commit;

\o pgoutput.hex
select encode(data, 'hex') from pg_logical_slot_get_binary_changes('recorder', null, null,
    'proto_version', '1', 'publication_names', 'recorded,inserts_only', 'messages', 'true');
\o
select pg_drop_replication_slot('recorder') as dropped \gset
\o copy_text.tsv
copy (select code, chr(code), 'a' || chr(code) || 'b' from generate_series(1, 127) code
      union all values (1000, '\N', null), (1001, '', '\.'), (1002, 'ü📦', E'\u0080\u0085'), (1003, '\', '\\'), (1004, 'null', 'NULL')
      order by 1) to stdout;

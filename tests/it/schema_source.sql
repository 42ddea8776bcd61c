-- A schema of everything that is awkward to carry over. What the job must not take along is marked.
CREATE EXTENSION citext SCHEMA public;
CREATE SCHEMA ext;
CREATE EXTENSION hstore SCHEMA ext;
CREATE EXTENSION ltree SCHEMA public;
CREATE EXTENSION btree_gist SCHEMA public;
CREATE EXTENSION pg_trgm SCHEMA ext;
CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE SCHEMA "coolSchema";
CREATE SCHEMA "Q_"" . S";

-- T21: one type name in two schemas, mixed case; labels with everything in them.
CREATE TYPE a.t AS ENUM ('x', 'it''s', 'back\slash', E'new\nline', ';--');
CREATE TYPE b.t AS ENUM ('y', 'x');
CREATE TYPE "coolSchema"."coolType" AS ENUM ('A');
-- Not made in the order of their names, nor of their use.
CREATE DOMAIN public.dpos AS int CHECK (value > 0) NOT NULL;
CREATE DOMAIN public.a_small AS public.dpos CHECK (value < 1000);
CREATE DOMAIN public.short AS varchar(7) COLLATE "C" DEFAULT 'canary in a domain';
CREATE DOMAIN "b\u0131" AS public.short;
CREATE DOMAIN public.arrd AS public.dpos[];
CREATE TYPE a.pair AS (x public.a_small, "Y y" text COLLATE "C", z a.t[]);
CREATE TYPE a."1outer" AS (p a.pair, q public.short);
CREATE TYPE public.floatrange AS RANGE (subtype = float8, subtype_diff = float8mi, multirange_type_name = "Float Multi");
CREATE SEQUENCE public.loose_seq START 77;

CREATE TABLE public.outside (id int PRIMARY KEY);
CREATE TABLE public.users (
    id bigint GENERATED ALWAYS AS IDENTITY (START 10 INCREMENT 5) PRIMARY KEY,
    email public.citext NOT NULL DEFAULT 'canary@example.org',
    first text DEFAULT 'canary; -- ''x' NOT NULL,
    last text DEFAULT 'kept, for it passes',
    full_name text GENERATED ALWAYS AS (first || ' ' || last) STORED,
    "full name" varchar(40) DEFAULT 'canary, too' COLLATE "C",
    note text DEFAULT NULL CHECK (note <> 'a,b' AND length(note) < 99),
    mood a.t DEFAULT 'it''s',
    created timestamptz DEFAULT now() NOT NULL,
    UNIQUE NULLS NOT DISTINCT (email)
);
CREATE UNIQUE INDEX users_lower ON public.users (lower(first), id) INCLUDE (note) WHERE last IS NOT NULL;
CREATE INDEX users_trgm ON public.users USING gin (last ext.gin_trgm_ops);
CREATE TABLE a.orders (
    id serial PRIMARY KEY,
    user_id bigint REFERENCES public.users DEFERRABLE INITIALLY DEFERRED,
    o int CONSTRAINT points_outside REFERENCES public.outside,
    v int DEFAULT nextval('public.loose_seq'),
    p a."1outer", r public.floatrange, m public."Float Multi", h ext.hstore, l public.ltree[], d public.a_small,
    ds public.dpos[], ad public.arrd, s public."b\u0131", c "coolSchema"."coolType"[], bt b.t,
    bp char(5), bits bit(3), n numeric(8, 2)[], during tstzrange,
    EXCLUDE USING gist (user_id WITH =, during WITH &&)
) WITH (fillfactor = 70);
ALTER TABLE a.orders ALTER l SET STORAGE EXTERNAL;
ALTER TABLE a.orders ADD CONSTRAINT later CHECK (v > 0) NOT VALID;
CREATE TABLE "Q_"" . S"."T "" ." ("c"" x" int PRIMARY KEY, "line
break" text, "CASE" "coolSchema"."coolType");
CREATE TABLE public."""x""" (a int PRIMARY KEY);
CREATE TABLE public."a
-- TOC entry 1 (class 1259 OID 1)
b" (a int PRIMARY KEY REFERENCES public."""x""");
CREATE TABLE public."a\b" (a int);
ALTER TABLE public."a\b" REPLICA IDENTITY FULL;
CREATE TABLE public."a_b" (a int PRIMARY KEY);
CREATE TABLE public."a%b" (a int PRIMARY KEY);
CREATE TABLE public."a?*.b$" (a int PRIMARY KEY);
CREATE TABLE public."ab" (a int PRIMARY KEY); -- not published: N04
CREATE TABLE a.idx (x int, gone int, y int NOT NULL, z text NOT NULL);
CREATE UNIQUE INDEX idx_y ON a.idx (z, y);
ALTER TABLE a.idx REPLICA IDENTITY USING INDEX idx_y;
ALTER TABLE a.idx DROP gone;

-- What stays at the source.
COMMENT ON COLUMN public.users.email IS 'canary in a comment';
CREATE FUNCTION public.trg() RETURNS trigger LANGUAGE plpgsql AS 'begin return new; end';
CREATE TRIGGER audit AFTER INSERT ON public.users FOR EACH ROW EXECUTE FUNCTION public.trg();
CREATE POLICY everyone ON public.users USING (first <> 'canary in a policy');
ALTER TABLE public.users ENABLE ROW LEVEL SECURITY;
CREATE STATISTICS public.statistics ON first, last FROM public.users;
CREATE PUBLICATION "p'ub" FOR TABLE public.users, a.orders, "Q_"" . S"."T "" .", public."""x""", public."a
-- TOC entry 1 (class 1259 OID 1)
b", public."a\b", public."a_b", public."a%b", public."a?*.b$", a.idx;
SELECT setval('public.loose_seq', 500), setval('public.users_id_seq', 105, false), nextval('a.orders_id_seq');

-- The second lock between tenants: row-level security for the roles that the services act as. Why so: docs/decisions/0012.
--
-- "iris_service" sees the rows of the tenants that a statement names in the setting "iris.tenants", one a line; without it, none.
-- "iris_everywhere" is for the few statements that cross tenants by their nature. Nobody logs in as either: the services' connections
-- change into them. The role that migrates owns the tables, and is not bound.

DO $$
DECLARE name TEXT;
BEGIN
  FOREACH name IN ARRAY ARRAY['iris_service', 'iris_everywhere'] LOOP
    -- Roles are the whole server's: another database of ours may have made them, perhaps at this moment.
    IF to_regrole(name) IS NULL THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', name);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
      END;
    END IF;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
      EXECUTE format('GRANT %I TO CURRENT_USER', name);
    END IF;
  END LOOP;
END $$;

-- Puts the lock on every table with a tenant_id that has none yet. migrate() calls it after each migration, so a table made later
-- needs no line of its own.
CREATE FUNCTION iris_guard_tables() RETURNS void LANGUAGE plpgsql AS $$
DECLARE guarded REGCLASS;
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO iris_service, iris_everywhere', current_schema());
  FOR guarded IN
    SELECT c.oid::regclass FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND NOT EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'of_the_tenants_named')
  LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', guarded);
    -- In a subselect the setting is read once a statement, not once a row.
    EXECUTE format('CREATE POLICY of_the_tenants_named ON %s TO iris_service USING (tenant_id = ANY ((SELECT string_to_array(current_setting(''iris.tenants'', true), E''\n''))::text[]))', guarded);
    EXECUTE format('CREATE POLICY everywhere ON %s TO iris_everywhere USING (true)', guarded);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO iris_service, iris_everywhere', guarded);
  END LOOP;
  EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO iris_service, iris_everywhere', current_schema());
END $$;

SELECT iris_guard_tables();

-- What was done stays written.
REVOKE UPDATE, DELETE ON "audit" FROM iris_service, iris_everywhere;

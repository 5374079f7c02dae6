import Foundation
import Testing

extension EndToEnd {
  /// Roles with no more rights than the documentation gives them, and others that try to get more.
  @Suite(.serialized) struct Grants {
    private static let work = """
      INSERT INTO app.tasks SELECT 't' || i, 1, 'a', 'title ' || i FROM generate_series(1, 2500) i;
      UPDATE app.tasks SET id = 'moved', title = 'moved' WHERE id = 't1';
      UPDATE app.tasks SET owner = 'b' WHERE id = 't2';
      DELETE FROM app.tasks WHERE id = 't3';
      INSERT INTO app.events VALUES (1, '2026-01-05', 'a'), (2, '2026-01-06', 'b');
      """

    @Test(
      "the documented rights suffice to install, deploy, serve, tick and verify, and writers need none",
      arguments: GrantStage.Way.allCases)
    func leastRights(way: GrantStage.Way) async throws {
      try await GrantStage.set { stage in
        try await stage.install(way)
        try await stage.serve { gateway, ann in
          let writer = stage.source(as: "writer")
          try await writer.run(Self.work)
          try await stage.shows(ann, "the writer's work")
          // A partition made later is captured by the gateway, which does not own the table.
          try await stage.admin.run(
            """
            SET ROLE app_owner;
            CREATE TABLE app.events_2 PARTITION OF app.events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
            GRANT INSERT ON app.events_2 TO writer
            """)
          try await writer.run("INSERT INTO app.events VALUES (3, '2026-02-05', 'a')")
          try await stage.shows(ann, "a row of a new partition")
          try await eventually("the new partition has its triggers") {
            try await stage.admin.run(
              "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.events_2'::regclass AND tgname = 'sluice_truncate'"
            ) == "1"
          }
          try await writer.run("INSERT INTO app.events_2 VALUES (4, '2026-02-06', 'a')")
          try await stage.shows(ann, "a row written to the partition itself")
          try await writer.run("TRUNCATE app.tasks")
          try await stage.shows(ann, "nothing of a table that was emptied")

          for command in ["verify", "status"] {
            let result = try await run("sluice", [command, "--config", gateway.configuration.path])
            #expect(result.status == 0, "\(command): \(result.output)\(result.error)")
          }
          #expect(!gateway.output.contains("\"level\":\"error\""), "\(gateway.output)")
          #expect(!gateway.output.contains("capture.missing"), "\(gateway.output)")
        }
        if way == .separate {
          let refused = try await run(
            "sluice",
            ["deploy", stage.rulesFile.path, "--database", stage.source(as: "gw").connectionString])
          #expect(refused.status == 1)
          #expect(refused.error.contains("SLUICE_NOT_PERMITTED"), "\(refused.error)")
        }
        // What the application's role may do with Sluice's schema: nothing.
        let rights = try await stage.admin.run(
          """
          SELECT has_schema_privilege('writer', 'sluice', 'USAGE') OR has_schema_privilege('writer', 'sluice', 'CREATE'),
            count(*) FILTER (WHERE has_table_privilege('writer', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE'))
          FROM pg_class c WHERE relnamespace = 'sluice'::regnamespace AND relkind IN ('r', 'p', 'S')
          """)
        #expect(rights == "f|0")
        for statement in [
          "SELECT * FROM sluice.entries", "INSERT INTO sluice.inbox VALUES (0, 1, '1', NULL)",
          "SELECT sluice.ensure_capture(1)", "SELECT sluice.empty_inbox()", "TRUNCATE sluice.inbox",
          "DROP TRIGGER sluice_insert ON app.tasks", "ALTER TABLE app.tasks DISABLE TRIGGER ALL",
          "CREATE FUNCTION sluice.f() RETURNS int LANGUAGE sql RETURN 1",
        ] {
          await #expect(throws: Source.Failed.self, "\(statement)") {
            try await stage.source(as: "writer").run(statement)
          }
        }
      }
    }

    /// Every function, operator, type and relation that Sluice's statements name, and some that they call
    /// without a schema, in schemas that come first for whoever looks there.
    private static let traps = """
      CREATE SCHEMA evil;
      CREATE TABLE public.caught (who text, what text);
      GRANT INSERT ON public.caught TO PUBLIC;
      GRANT USAGE ON SCHEMA evil TO PUBLIC;
      CREATE FUNCTION evil.catch(what text) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO public.caught VALUES (current_user, what); END $$;
      DO $do$
      DECLARE place text; f record;
      BEGIN
        FOREACH place IN ARRAY ARRAY['evil', 'public'] LOOP
          FOR f IN SELECT * FROM (VALUES
            ('pg_current_xact_id', '', 'xid8'), ('encode', 'bytea, text', 'text'), ('concat', 'text', 'text'),
            ('to_json', 'date', 'json'), ('lpad', 'text, integer, text', 'text'), ('to_hex', 'bigint', 'text'),
            ('hashtextextended', 'text, bigint', 'bigint'), ('hashtextextended', 'text, integer', 'bigint'),
            ('set_config', 'text, text, boolean', 'text'), ('current_setting', 'text', 'text'),
            ('pg_notify', 'text, text', 'text'), ('pg_try_advisory_lock', 'bigint', 'boolean'),
            ('jsonb_typeof', 'jsonb', 'text'), ('format', 'text, text, text', 'text'),
            ('to_regclass', 'text', 'regclass'), ('has_table_privilege', 'oid, text', 'boolean'),
            ('octet_length', 'text', 'integer'), ('bucket_of', 'bigint, text', 'bigint'),
            ('stamp_after', 'text', 'text')
          ) v(name, arguments, result) LOOP
            EXECUTE format('CREATE FUNCTION %I.%I(%s) RETURNS %s LANGUAGE plpgsql AS '
              '$f$BEGIN PERFORM evil.catch(%L); RETURN NULL; END$f$',
              place, f.name, f.arguments, f.result, f.name);
          END LOOP;
          FOR f IN SELECT * FROM (VALUES
            ('>>', 'bigint', 'integer', 'bigint'), ('&', 'bigint', 'bigint', 'bigint'), ('/', 'bigint', 'bigint', 'bigint'),
            ('=', 'text', 'text', 'boolean'), ('<>', 'text', 'text', 'boolean'), ('=', 'bigint', 'bigint', 'boolean'),
            ('=', 'integer', 'integer', 'boolean'), ('>=', 'xid8', 'xid8', 'boolean'), ('=', 'xid8', 'xid8', 'boolean'),
            ('||', 'text', 'text', 'text'), ('>', 'bigint', 'bigint', 'boolean'), ('<=', 'bigint', 'bigint', 'boolean'),
            ('#>>', 'json', 'text[]', 'text')
          ) v(name, l, r, result) LOOP
            EXECUTE format('CREATE FUNCTION %I.%I(l %s, r %s) RETURNS %s LANGUAGE plpgsql AS '
              '$f$BEGIN PERFORM evil.catch(%L); RETURN NULL; END$f$', place,
              'op' || md5(f.name || f.l), f.l, f.r, f.result, f.name);
            EXECUTE format('CREATE OPERATOR %I.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = %I.%I)',
              place, f.name, f.l, f.r, place, 'op' || md5(f.name || f.l));
          END LOOP;
          EXECUTE format('CREATE AGGREGATE %I.array_agg(text) (SFUNC = array_append, STYPE = text[])', place);
          EXECUTE format('CREATE AGGREGATE %I.count(bigint) (SFUNC = int8pl, STYPE = bigint)', place);
          EXECUTE format('CREATE TABLE %I.inbox (slot int2, source int, xid xid8, keys text[])', place);
          EXECUTE format('CREATE TABLE %I.entries (id int)', place);
          EXECUTE format('CREATE TABLE %I.pg_class (oid oid, relname name, relkind "char", relnamespace oid)', place);
          EXECUTE format('CREATE TABLE %I.pg_trigger (tgrelid oid)', place);
        END LOOP;
      END $do$;
      CREATE DOMAIN evil.xid8 AS pg_catalog.text CHECK (evil.catch('domain') IS NULL);
      CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false);
      """

    /// In the writer's own session: what stands before everything else there.
    private static let hostileSession = """
      SET search_path = evil, public, pg_temp, pg_catalog;
      CREATE TEMP TABLE inbox (slot int2, source int, xid pg_catalog.xid8, keys pg_catalog.text[]);
      CREATE TEMP TABLE sluice_new (id pg_catalog.text, part int, owner pg_catalog.text, title pg_catalog.text);
      CREATE TEMP TABLE sluice_old (LIKE sluice_new);
      CREATE TEMP TABLE pg_trigger (tgrelid oid, tgname name, tgfoid oid, tgenabled "char");
      CREATE TEMP TABLE pg_class (oid oid, relname name, relkind "char", relnamespace oid);
      SET DateStyle = 'German'; SET TimeZone = 'Asia/Kathmandu'; SET IntervalStyle = 'sql_standard';
      SET standard_conforming_strings = off; SET bytea_output = escape; SET extra_float_digits = -15;
      SET check_function_bodies = off; SET enable_seqscan = off;
      """

    @Test(
      "a hostile writer's search path, temporary objects and shadows in public are never looked at",
      arguments: GrantStage.Way.allCases)
    func shadows(way: GrantStage.Way) async throws {
      try await GrantStage.set { stage in
        let writer = stage.source(as: "writer")
        try await stage.admin.run(
          "GRANT CREATE ON SCHEMA public TO PUBLIC; GRANT CREATE ON DATABASE \"\(stage.name)\" TO writer"
        )
        // Before the installation as well as after: a DBA's own session has the usual search path.
        try await writer.run(Self.traps)
        try await stage.install(way)
        try await stage.serve { gateway, ann in
          try await writer.run(
            Self.hostileSession
              + Self.work.replacing("'title ' || i", with: "'title'")
              .replacing("'t' || i", with: "pg_catalog.concat('t', i)")
              .replacing("WHERE id = ", with: "WHERE id OPERATOR(pg_catalog.=) "))
          try await stage.shows(ann, "what was written in a hostile session")
          try await writer.run(Self.hostileSession + "TRUNCATE app.events")
          try await stage.shows(ann, "what was emptied in a hostile session")
          for command in ["verify", "status"] {
            let result = try await run("sluice", [command, "--config", gateway.configuration.path])
            #expect(result.status == 0, "\(command): \(result.output)\(result.error)")
          }
          #expect(!gateway.output.contains("\"level\":\"error\""), "\(gateway.output)")
        }
        let caught = try await stage.admin.run(
          "SELECT DISTINCT who, what FROM public.caught WHERE who <> 'writer'")
        #expect(caught == "", "somebody with more rights called \(caught)")
        // Whoever may run the gateway is no owner of Sluice's functions: it cannot become one by shadows.
        if way == .separate {
          try await stage.source(as: "gw").run(
            """
            CREATE FUNCTION pg_temp.trap() RETURNS boolean LANGUAGE plpgsql AS $$
              BEGIN INSERT INTO public.caught VALUES (current_user, 'pg_temp'); RETURN true; END $$;
            CREATE VIEW pg_temp.pg_class AS SELECT c.* FROM pg_catalog.pg_class c WHERE pg_temp.trap();
            CREATE VIEW pg_temp.pg_trigger AS SELECT t.* FROM pg_catalog.pg_trigger t WHERE pg_temp.trap();
            SELECT sluice.ensure_capture(s.id) FROM sluice.sources s;
            """)
          let more = try await stage.admin.run(
            "SELECT DISTINCT who FROM public.caught WHERE what = 'pg_temp' AND who <> 'gw'")
          #expect(more == "")
        }
      }
    }
  }
}

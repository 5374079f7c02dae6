"""The figures of deploy/bench: each measured beside its limit, on one cluster, one after the other."""

import argparse
import json
import os
import resource
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import psycopg2

arguments = argparse.ArgumentParser()
for name in ("bin", "work", "pg-bin", "only", "build"):
    arguments.add_argument("--" + name)
for name in ("port", "rows", "seconds"):
    arguments.add_argument("--" + name, type=int)
options = arguments.parse_args()
work, rows = options.work, options.rows
only = set(filter(None, options.only.split(",")))
os.environ["PGDATABASE"] = "bench"
environment = dict(os.environ)
config = work + "/sluice.yaml"
results = []


def wanted(name):
    return not only or name in only


def report(what, ours, limit_name, limit, unit, better="more"):
    """Notes a figure and prints it: how we stand to the limit, above 1 being better than the limit."""
    ratio = ours / limit if better == "more" else limit / ours
    results.append(what)
    print(f"{what:<46} {ours:>12,.1f} {unit:<9} {limit_name:<34} {limit:>12,.1f} {unit:<9} {ratio:>6.2f}", flush=True)


def note(what, text):
    print(f"{what:<46} {text}", flush=True)


def connect():
    connection = psycopg2.connect("")
    connection.autocommit = True
    return connection


def execute(sql, *values):
    with closing(connect()) as connection, connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else None


def timed(action):
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def shell(command):
    subprocess.run(command, shell=True, check=True, env=environment, stdin=subprocess.DEVNULL)


def sluice(*command):
    done = subprocess.run([options.bin + "/sluice", *command, "--config", config], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"bench: sluice {' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Gateway:
    def __enter__(self):
        self.log = open(work + "/gateway.log", "a")
        self.process = subprocess.Popen([options.bin + "/sluice", "serve", "--config", config], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        with open(work + "/spawned", "a") as spawned:
            spawned.write(f"{self.process.pid}\n")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if b" 200 " in request("GET", "/ready", close=True).recv(64):
                    return self
            except OSError:
                pass
            time.sleep(0.05)
        sys.exit("bench: the gateway did not become ready:\n" + open(work + "/gateway.log").read()[-2000:])

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def resident(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) / 1024


def request(method, target, body=None, close=False, receive_buffer=None):
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.connect(("127.0.0.1", options.port))
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    if close:
        head += "Connection: close\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    connection.sendall((head + "\r\n" + (body or "")).encode())
    return connection


def open_stream(receive_buffer=None):
    body = '{"client_id":"bench","schema":null,"buckets":{},"parameters":{},"subscriptions":[],"include_defaults":true}'
    return request("POST", "/v1/stream", body, receive_buffer=receive_buffer)


def first_sync():
    """Reads a first sync to its complete line and throws it away; the bytes."""
    connection = open_stream()
    total, tail, buffer = 0, b"", bytearray(1 << 18)
    while True:
        count = connection.recv_into(buffer)
        if count == 0:
            sys.exit("bench: the stream ended before its complete line: " + tail[-300:].decode(errors="replace"))
        total += count
        tail = (tail + bytes(buffer[max(0, count - 200):count]))[-400:]
        if b'{"complete":' in tail:
            connection.close()
            return total


class Replica:
    """A replica that stays connected; notes when each change of `probe` became visible to a reader of its file."""

    def __init__(self):
        self.file = work + "/watched.db"
        self.seen = {}
        self.process = subprocess.Popen(
            [options.bin + "/sluice-replica", "watch", "--url", f"http://127.0.0.1:{options.port}", "--token-file", work + "/token",
             "--db", self.file, "--format", "json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with open(work + "/spawned", "a") as spawned:
            spawned.write(f"{self.process.pid}\n")
        self.process.stdout.readline()  # the first checkpoint
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        last, version = 0, None
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as reader:
            while self.process.poll() is None:
                time.sleep(0.0005)
                current = reader.execute("PRAGMA data_version").fetchone()[0]
                if current == version:
                    continue
                version = current
                newest = reader.execute("SELECT max(n) FROM probe").fetchone()[0]
                now = time.time()
                for number in range(last + 1, newest + 1):
                    self.seen[number] = now
                last = max(last, newest)

    def close(self):
        self.process.terminate()
        self.process.wait()


def percentiles(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def changes(rate, seconds, table, key, first=1):
    """Commits `rate` updates a second, numbered from `first`; when each commit returned."""
    committed = {}
    with closing(connect()) as connection, connection.cursor() as cursor:
        began = time.time()
        for step in range(rate * seconds):
            due = began + step / rate
            if due > time.time():
                time.sleep(due - time.time())
            cursor.execute(f"UPDATE {table} SET n = %s WHERE id = %s", (first + step, step % key + 1))
            committed[first + step] = time.time()
    return committed


print(f"{rows:,} rows, {options.build} build, {os.cpu_count()} cores, {execute('SHOW server_version')[0][0]}\n")
print(f"{'figure':<46} {'here':>12} {'':<9} {'limit':<34} {'':>12} {'':<9} {'ratio':>6}")

execute("""
    CREATE TABLE items (id int PRIMARY KEY, n int NOT NULL, title text, owner text, body text);
    INSERT INTO items SELECT n, 0, 'item ' || n, 'owner ' || n %% 100, repeat(md5(n::text), 4) FROM generate_series(1, %s) AS n;
    CREATE TABLE plain (LIKE items INCLUDING ALL);
    INSERT INTO plain SELECT * FROM items;
    CREATE TABLE probe (id int PRIMARY KEY, n int NOT NULL);
    INSERT INTO probe SELECT n, 0 FROM generate_series(1, 100) AS n;
""", rows)
with closing(connect()) as connection, connection.cursor() as cursor:
    cursor.execute("VACUUM ANALYZE")
with open(work + "/rules.yaml", "w") as file:
    file.write("config:\n  edition: 2\nbucket_definitions:\n  all:\n    data:\n"
               "      - SELECT id, n, title, owner, body FROM items\n      - SELECT id, n FROM probe\n")

# Backfill: what the rules' first deployment costs, beside a plain copy of the same JSON with the same two indexes.
execute("""
    CREATE TABLE copied (query int, source_key text COLLATE "C", bucket int, id bigint, stamp timestamptz, object_id text, data text, checksum bigint);
    CREATE INDEX ON copied (query, source_key, bucket);
    CREATE UNIQUE INDEX ON copied (bucket, id);
""")
copy_time = timed(lambda: execute("""
    INSERT INTO copied SELECT 1, i.id::text, 1, row_number() OVER (), now(), i.id::text, j.data, hashtextextended(j.data, i.id)
    FROM items AS i CROSS JOIN LATERAL (SELECT row_to_json(i)::text AS data) AS j
"""))
sluice("install")
deploy_time = timed(lambda: sluice("deploy", work + "/rules.yaml"))
token = sluice("token", "--user", "bench", "--ttl", "12h").strip()
if wanted("backfill"):
    report("backfill of the first deployment", rows / deploy_time, "INSERT … SELECT, two indexes", rows / copy_time, "rows/s")
execute("DROP TABLE copied")

with Gateway() as gateway:
    first_sync()
    if wanted("first-sync"):
        ours = min(timed(first_sync) for _ in range(3))
        limit = min(timed(lambda: shell(f"psql -Xqc 'COPY (SELECT row_to_json(i) FROM items AS i) TO STDOUT' >/dev/null")) for _ in range(3))
        report("first sync, thrown away", rows / ours, "psql COPY of row_to_json", rows / limit, "rows/s")
        note("", f"{first_sync() / rows:.0f} bytes a row on the wire")

    with open(work + "/token", "w") as file:
        file.write(token)

    if wanted("sqlite"):
        def fill():
            for suffix in ("", "-wal", "-shm"):
                if os.path.exists(work + "/bench.db" + suffix):
                    os.remove(work + "/bench.db" + suffix)
            subprocess.run([options.bin + "/sluice-replica", "sync", "--url", f"http://127.0.0.1:{options.port}", "--token-file",
                            work + "/token", "--db", work + "/bench.db"], check=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        ours = min(timed(fill) for _ in range(2))
        client_peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        shell(f"psql -Xqc \"COPY items TO STDOUT (FORMAT csv)\" >{work}/items.csv")
        script = ("PRAGMA journal_mode=WAL; CREATE TABLE items (id TEXT PRIMARY KEY, n INTEGER, title TEXT, owner TEXT, body TEXT);\n"
                  f".mode csv\n.import {work}/items.csv items\n")
        limit = timed(lambda: subprocess.run(["sqlite3", work + "/limit.db"], input=script, text=True, check=True, stdout=subprocess.DEVNULL))
        report("first sync into SQLite", rows / ours, "sqlite3 shell, .import of CSV", rows / limit, "rows/s")

    if wanted("latency"):
        replica = Replica()
        changes(100, 2, "probe", 100)
        committed = changes(100, options.seconds, "probe", 100, first=201)
        time.sleep(1)
        ours = percentiles([(replica.seen[n] - at) * 1000 for n, at in committed.items() if n in replica.seen])
        missing = sum(1 for n in committed if n not in replica.seen)
        replica.close()
        slot = subprocess.Popen([options.pg_bin + "/pg_recvlogical", "-d", "bench", "--slot", "limit", "--create-slot", "--start",
                                 "-P", "test_decoding", "-f", "-"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        arrived = {}

        def follow():
            for line in slot.stdout:
                if " public.probe:" in line:
                    arrived.setdefault(int(line.rsplit("n[integer]:", 1)[1]), time.time())

        threading.Thread(target=follow, daemon=True).start()
        time.sleep(1)
        committed = changes(100, options.seconds, "probe", 100)
        time.sleep(1)
        slot.terminate()
        slot.wait()
        execute("SELECT pg_drop_replication_slot('limit')")
        limit = percentiles([(arrived[n] - at) * 1000 for n, at in committed.items() if n in arrived])
        report("commit to the replica, p50 at 100/s", ours[0], "pg_recvlogical, test_decoding", limit[0], "ms", "less")
        report("commit to the replica, p99 at 100/s", ours[1], "pg_recvlogical, test_decoding", limit[1], "ms", "less")
        if missing:
            note("", f"{missing} changes never came")

    if wanted("tick"):
        count = min(100_000, rows)

        def ticked():
            head = execute("SELECT max(number) FROM sluice.ticks")[0][0]
            captured = timed(lambda: execute(f"UPDATE items SET n = n + 1 WHERE id <= {count}"))
            began = time.perf_counter()
            while execute(f"SELECT count(*) FROM sluice.ticks WHERE number > {head}")[0][0] == 0:
                time.sleep(0.01)
            return captured, time.perf_counter() - began

        # The least that keeping the entries costs: they are made already, and nothing is compared or replaced.
        execute(f"CREATE UNLOGGED TABLE made AS SELECT * FROM sluice.entries ORDER BY bucket, id LIMIT {count}")
        execute("CREATE TABLE kept (LIKE sluice.entries INCLUDING ALL)")
        plain, captured, tick, inserted = [], [], [], []
        for _ in range(3):
            plain.append(timed(lambda: execute(f"UPDATE plain SET n = n + 1 WHERE id <= {count}")))
            for times, taken in zip((captured, tick), ticked()):
                times.append(taken)
            execute("TRUNCATE kept")
            inserted.append(timed(lambda: execute("INSERT INTO kept SELECT * FROM made")))
        report(f"UPDATE of {count:,} rows with capture", count / min(captured), "the same without capture", count / min(plain), "rows/s")
        report("the tick that takes them", count / min(tick), "the UPDATE without capture", count / min(plain), "rows/s")
        report("the tick that takes them", count / min(tick), "INSERT of its entries, same indexes", count / min(inserted), "rows/s")

    if wanted("memory"):
        before = gateway.resident()
        for _ in range(5):
            first_sync()
        after = gateway.resident()
        stalled = [open_stream(receive_buffer=4096) for _ in range(20)]
        time.sleep(3)
        held = gateway.resident()
        for connection in stalled:
            connection.close()
        note("memory of the gateway", f"{before:.0f} MB; after 5 more first syncs {after:.0f} MB; with 20 readers that stopped {held:.0f} MB")
        if wanted("sqlite"):
            note("memory of the replica at its peak", f"{client_peak:.0f} MB")

# Capture alone, without a gateway that shares the machine: the same statements on a table with triggers, on one without, and on one whose
# triggers do nothing, which is the least that any capture by triggers costs. In turns, so that all see the same machine; the medians count.
if wanted("capture"):
    count = min(100_000, rows)
    execute("""
        CREATE TABLE hollow (LIKE items INCLUDING ALL);
        INSERT INTO hollow SELECT * FROM plain;
        CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER i AFTER INSERT ON hollow REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION nothing();
        CREATE TRIGGER u AFTER UPDATE ON hollow REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION nothing();
        CREATE SEQUENCE numbers START 10000001;
    """)
    with closing(connect()) as connection, connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")

    def single(statement):
        def rate(table):
            with open(work + "/pgbench.sql", "w") as file:
                file.write(statement.format(rows=count, table=table))
            done = subprocess.run(["pgbench", "-n", "-M", "prepared", "-c", "4", "-j", "1", "-T", "2", "-f", work + "/pgbench.sql", "bench"],
                                  capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, env=environment)
            return float(next(l for l in done.stdout.splitlines() if l.startswith("tps")).split()[2])
        return rate

    def bulk(statement):
        return lambda table: count / timed(lambda: execute(statement.format(rows=count, table=table)))

    for label, unit, rate in (
            ("single-row UPDATE, 4 clients", "/s", single("\\set k random(1, {rows})\nUPDATE {table} SET n = n + 1 WHERE id = :k;\n")),
            ("single-row INSERT, 4 clients", "/s", single("INSERT INTO {table} VALUES (nextval('numbers'), 0, 't', 'o', 'b');\n")),
            (f"UPDATE of {count:,} rows", "rows/s", bulk("UPDATE {table} SET n = n + 1 WHERE id <= {rows}")),
            (f"INSERT of {count:,} rows", "rows/s",
             bulk("INSERT INTO {table} SELECT nextval('numbers'), 0, 't', 'o', 'b' FROM generate_series(1, {rows})"))):
        rates = {"plain": [], "hollow": [], "items": []}
        for _ in range(max(3, options.seconds // 2)):
            for table, found in rates.items():
                found.append(rate(table))
        median = {table: sorted(found)[len(found) // 2] for table, found in rates.items()}
        report(label + ", captured", median["items"], "without triggers", median["plain"], unit)
        report(label + ", empty triggers", median["hollow"], "without triggers", median["plain"], unit)

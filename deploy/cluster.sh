# Sourced by deploy/demo and deploy/bench: a PostgreSQL cluster in a temporary folder, gone when the script is gone.
#
#   make_workspace NAME      sets $work, a temporary folder, and a janitor that clears up even after kill -9 of the script
#   start_cluster [SETTING=VALUE …]   sets PGHOST and PGUSER for psql, and $cluster for connection strings
#   spawn COMMAND …          a background process that ends with the script; its id in $spawned
#   stop_all                 ends what was spawned, stops the cluster, removes $work

pg_bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)

make_workspace() {
  work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-$1.XXXXXX")
  chmod 711 "$work"
  : >"$work/spawned"
  declare -f stop_all as_postgres >"$work/stop"
  {
    printf 'work=%q pg_bin=%q\n' "$work" "$pg_bin"
    echo 'while kill -0 "$1" 2>/dev/null; do sleep 1; done'
    echo '[ -d "$work" ] && stop_all'
  } >>"$work/stop"
  setsid bash "$work/stop" $$ </dev/null >/dev/null 2>&1 &
  disown
  trap stop_all EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

as_postgres() {
  if [ "$(id -u)" -eq 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

start_cluster() {
  local settings=() setting
  for setting in "$@"; do settings+=(-c "$setting"); done
  mkdir "$work/cluster"
  [ "$(id -u)" -ne 0 ] || chown postgres "$work/cluster"
  as_postgres "$pg_bin/initdb" -D "$work/cluster/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 \
    --no-sync >"$work/initdb.log" 2>&1 </dev/null || { cat "$work/initdb.log" >&2; exit 3; }
  as_postgres "$pg_bin/pg_ctl" -D "$work/cluster/data" -w -l "$work/cluster/log" \
    -o "-c listen_addresses= -c unix_socket_directories=$work/cluster ${settings[*]}" start >/dev/null </dev/null ||
    { cat "$work/cluster/log" >&2; exit 3; }
  export PGHOST="$work/cluster" PGUSER=postgres
  unset PGPORT PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS
  cluster="postgresql://postgres@/%s?host=$work/cluster"
}

spawn() {
  "$@" </dev/null &
  spawned=$!
  echo "$spawned" >>"$work/spawned"
}

stop_all() {
  trap - EXIT INT TERM HUP
  # Some of what was spawned has ended by now: that must not change the status that the script ends with.
  set +e
  local pids
  pids=$(tac "$work/spawned" 2>/dev/null | tr '\n' ' ')
  # shellcheck disable=SC2086
  [ -z "$pids" ] || kill $pids 2>/dev/null
  for _ in {1..50}; do
    # shellcheck disable=SC2086
    [ -n "$pids" ] && kill -0 $pids 2>/dev/null || break
    sleep 0.2
  done
  # shellcheck disable=SC2086
  [ -z "$pids" ] || kill -9 $pids 2>/dev/null
  [ ! -d "$work/cluster/data" ] ||
    as_postgres "$pg_bin/pg_ctl" -D "$work/cluster/data" -m immediate -w stop >/dev/null 2>&1 </dev/null
  rm -rf "$work"
}

free_port() {
  local port=${1:-8686}
  while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}

# Sourced by deploy/demo and deploy/bench: a PostgreSQL cluster in a temporary folder, gone when the script is gone.
#
#   make_workspace NAME      sets $work, a temporary folder, and a janitor that clears up even after kill -9 of the script
#   start_cluster [SETTING=VALUE …]   sets PGHOST and PGUSER for psql, and $cluster for connection strings
#   spawn LOG COMMAND …      a background process that ends with the script; its id in $spawned
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
  local log=$1
  shift
  "$@" </dev/null >"$log" 2>&1 &
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
  for _ in 1 2 3 4 5 6 7 8 9 10; do
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

# One HTTP GET without a client at hand: prints the status line's code.
http_status() {
  local port=$1 path=$2 line
  { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || return 1
  printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$path" >&3
  IFS= read -r -t 5 line <&3 || true
  exec 3<&- 3>&-
  [[ $line =~ ^HTTP/1\.[01]\ ([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# Waits until the gateway on PORT says that it is ready, for SECONDS at most.
await_ready() {
  local port=$1 seconds=$2 pid=$3 log=$4 deadline
  deadline=$((SECONDS + seconds))
  until [ "$(http_status "$port" /ready)" = 200 ]; do
    if ! kill -0 "$pid" 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
      echo "the gateway did not become ready:" >&2
      tail -n 20 "$log" >&2
      return 1
    fi
    sleep 0.1
  done
}

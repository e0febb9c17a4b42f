#!/bin/bash
# Brings up an MLflow server with PostgreSQL, proxied artefacts and login on this machine.
#
#   tests/cluster/mlflow_up.sh up      starts both (root; Debian's postgresql, uv) and prints the address
#   tests/cluster/mlflow_up.sh restart stops the server, not the database, and starts it again
#   tests/cluster/mlflow_up.sh down    stops them
#
# The state is in MLFLOW_ROOT (default: /tmp/warplog-mlflow), the port is MLFLOW_PORT (default: 5056), the administrator
# is admin with the password MLFLOW_PASSWORD (default: warplog-test-1).
set -euo pipefail
root=${MLFLOW_ROOT:-/tmp/warplog-mlflow}
port=${MLFLOW_PORT:-5056}
password=${MLFLOW_PASSWORD:-warplog-test-1}
binaries=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
database_port=5544
start_s=480 # over 150 s were seen on two cores with a load of 18

start_database() {
  mkdir -p "$root" && chown postgres "$root"
  if [ ! -d "$root/data" ]; then
    runuser -u postgres -- "$binaries/initdb" -D "$root/data" -A trust -U mlflow >/dev/null
  fi
  runuser -u postgres -- "$binaries/pg_ctl" -D "$root/data" -l "$root/postgres.log" -w start \
    -o "-p $database_port -k $root -c listen_addresses=127.0.0.1" >/dev/null
  for name in mlflow login; do
    psql -h 127.0.0.1 -p $database_port -U mlflow -d postgres -qc "create database $name" 2>/dev/null || true
  done
}

start_server() {
  local base="postgresql+psycopg2://mlflow@127.0.0.1:$database_port"
  cat >"$root/login.ini" <<END
[mlflow]
default_permission = READ
database_uri = $base/login
admin_username = admin
admin_password = $password
auth_cache_ttl_seconds = 60
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
END
  export MLFLOW_AUTH_CONFIG_PATH="$root/login.ini" MLFLOW_DISABLE_TELEMETRY=true DO_NOT_TRACK=true
  MLFLOW_FLASK_SERVER_SECRET_KEY=$(head -c 32 /dev/urandom | base64)
  export MLFLOW_FLASK_SERVER_SECRET_KEY
  setsid uv run --quiet --no-project --with "mlflow[auth]==3.17.*" --with psycopg2-binary \
    mlflow server --app-name basic-auth --backend-store-uri "$base/mlflow" --serve-artifacts \
    --artifacts-destination "$root/artefacts" --host 127.0.0.1 --port "$port" --workers 2 \
    --uvicorn-opts "--timeout-worker-healthcheck 120" \
    >"$root/server.log" 2>&1 </dev/null &
  echo $! >"$root/server.pid"
  local deadline=$((SECONDS + start_s))
  until curl -fs -m 10 "http://127.0.0.1:$port/health" >/dev/null; do
    if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "$(cat "$root/server.pid")" 2>/dev/null; then
      echo "the server does not answer, see $root/server.log" >&2
      exit 1
    fi
    sleep 0.5
  done
  echo "MLFLOW_TRACKING_URI=http://127.0.0.1:$port MLFLOW_TRACKING_USERNAME=admin MLFLOW_TRACKING_PASSWORD=$password"
}

stop_server() {
  kill -- "-$(cat "$root/server.pid")" || true
  while curl -fs "http://127.0.0.1:$port/health" >/dev/null; do sleep 0.2; done
}

stop() {
  stop_server
  runuser -u postgres -- "$binaries/pg_ctl" -D "$root/data" -m fast stop >/dev/null
}

case ${1:-} in
up) start_database && start_server ;;
restart) stop_server && start_server ;;
down) stop ;;
*)
  sed -n '2,9s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac

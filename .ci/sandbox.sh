# What docker/verify and config/debian/verify share: a minimal Debian, a private PostgreSQL on loopback, and the trial of the service
# that stands in such a root. Sourced by root, with $root (the checkout) and $work (a fresh folder) set; `leave` takes back all of it.
# shellcheck shell=bash disable=SC2154

say() { printf '%s\n' "- $*"; }
die() {
  printf '%s: %s\n' "${0#"$root/"}" "$*" >&2
  exit 1
}

# Mounts, processes and containers, undone in reverse.
undo=()
leave() {
  local status=$? i
  trap '' INT TERM
  for ((i = ${#undo[@]} - 1; i >= 0; --i)); do eval "${undo[i]}" >/dev/null 2>&1 || true; done
  rm -rf --one-file-system -- "$work"
  exit "$status"
}

# quiet NAME COMMAND…: shows the output only when it fails.
quiet() {
  local log=$work/$1.log began=$SECONDS
  shift
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    die "failed after $((SECONDS - began)) s: $*"
  fi
  ((SECONDS - began < 5)) || say "  took $((SECONDS - began)) s"
}

# shellcheck disable=SC2016 # the names are apt's
# The Debian archives that this machine's own apt uses: "URI SUITE COMPONENT" a line.
archives() { apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' 'Origin: Debian' | sort -u; }

# debian_root FOLDER: unpacks a minimal Debian 12 there. It is made once, by debootstrap, and kept in .dev/cache for a week.
debian_root() {
  local made mirror tarball
  tarball=$root/.dev/cache/bookworm-$(dpkg --print-architecture).tar
  if [ -z "$(find "$tarball" -mtime -7 2>/dev/null)" ]; then
    mirror=$(archives | awk '$2 == "bookworm" {print $1; exit}')
    say "Making a minimal Debian 12 (debootstrap)"
    made=$work/debian
    # Without a mirror of its own it takes the one that it knows.
    quiet debootstrap debootstrap --variant=minbase bookworm "$made" ${mirror:+"$mirror"}
    archives | awk '$2 ~ /^bookworm/ {print "deb", $1, $2, $3}' >"$work/sources"
    [ ! -s "$work/sources" ] || cp "$work/sources" "$made/etc/apt/sources.list"
    # An archive that is frozen in time here is so there.
    apt-config dump | grep -E '^Acquire::(Check-(Valid-Until|Date)|https?::Proxy) ' >"$made/etc/apt/apt.conf.d/90host" || true
    # As in Debian's own slim images.
    rm -rf "$made"/var/cache/apt/*.bin "$made"/var/cache/apt/archives/*.deb "$made"/var/lib/apt/lists/* "$made"/var/log/* \
      "$made"/usr/share/{doc,man,locale,info}/*
    printf 'path-exclude /usr/share/%s/*\n' doc man locale info >"$made/etc/dpkg/dpkg.cfg.d/slim"
    mkdir -p "${tarball%/*}"
    tar -C "$made" -cf "$tarball.new" .
    mv "$tarball.new" "$tarball"
    rm -rf --one-file-system -- "$made"
  fi
  mkdir -p "$1"
  tar -C "$1" -xpf "$tarball"
}

free_port() {
  local port
  while :; do
    port=$((10000 + RANDOM % 20000))
    grep -qiE ":$(printf '%04X' "$port") [0-9A-F:]+ 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null || break
  done
  echo "$port"
}

# A cluster on a loopback port, so that a root of its own reaches it without a file in common. Ends with this shell.
start_postgres() {
  local bin data=$work/postgres as=(setpriv --reuid=postgres --regid=postgres --init-groups)
  bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  [ -x "$bin/postgres" ] || die "the PostgreSQL server is not installed"
  pg_port=$(free_port)
  chmod 711 "$work" # its user passes through
  mkdir -m 700 "$data"
  chown postgres: "$data"
  (cd / && quiet initdb "${as[@]}" "$bin/initdb" -D "$data" -U recibo -A trust -E UTF8 --locale=C --no-sync)
  (cd / && exec "${as[@]}" --pdeathsig=INT "$bin/postgres" -D "$data" -k "$data" -p "$pg_port" -c listen_addresses=127.0.0.1) \
    >"$work/postgres.log" 2>&1 &
  pg_pid=$!
  undo+=("kill -INT $pg_pid; wait $pg_pid")
  until psql -XqAt -h 127.0.0.1 -p "$pg_port" -U recibo -d postgres -c 'select 1' >/dev/null 2>&1; do
    kill -0 "$pg_pid" 2>/dev/null || die "PostgreSQL did not start: $(tail -n 5 "$work/postgres.log")"
    sleep 0.1
  done
  psql -XqAt -h 127.0.0.1 -p "$pg_port" -U recibo -d postgres -c 'create database recibo'
}

# What the shipped configuration asks of the environment, one variable a line.
write_environment() {
  local token
  token=$(head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
  api_token=checkout_$token
  callback_port=$(free_port)
  api_port=$(free_port)
  cat <<END
RECIBO_DATABASE_URL=postgresql://recibo_service@127.0.0.1:$pg_port/recibo
RECIBO_CALLBACK_PORT=$callback_port
RECIBO_API_PORT=$api_port
RECIBO_OPS_TOKEN_SHA256=$(printf %s "ops_$token" | sha256sum | cut -d ' ' -f 1)
RECIBO_CHECKOUT_TOKEN_SHA256=$(printf %s "$api_token" | sha256sum | cut -d ' ' -f 1)
ACME_SECRET=whsec_$(head -c 32 /dev/urandom | base64 -w 0)
STRIPE_SECRET=whsec_$token
GITHUB_SECRET=github_$token
LEGACY_SECRET=legacy_$token
LEDGER_SECRET=whsec_$(head -c 32 /dev/urandom | base64 -w 0)
END
}
owner_url() { echo "postgresql://recibo@127.0.0.1:$pg_port/recibo"; }

# try_service PID COMMAND…: what a running service must do, from registration to its end. PID: the process that serves. COMMAND: runs
# the program in the same place, for its own `send`.
try_service() {
  local pid=$1 answer ready=http://127.0.0.1:$callback_port/readyz until=$((SECONDS + 60)) began
  shift
  until curl -fsS --max-time 5 -o /dev/null "$ready" 2>/dev/null; do
    kill -0 "$pid" 2>/dev/null || die "the service ended: $(tail -n 20 "$work/service.log")"
    ((SECONDS < until)) || die "the service is not ready: $(curl -sS --max-time 5 "$ready" 2>&1) $(tail -n 20 "$work/service.log")"
    sleep 0.2
  done
  say "  ready"
  answer=$(curl -sS --fail-with-body --max-time 15 "http://127.0.0.1:$api_port/v1/operations" \
    -H "Authorization: Bearer $api_token" -H 'Content-Type: application/json' \
    -d '{"request_id": "trial-1", "provider": "acme", "action": "charge", "amount": "19.99", "currency": "EUR"}') ||
    die "the registration was refused: $answer"
  quiet send "$@" send acme --request-id trial-1 --event payment.completed --amount 19.99 --currency EUR
  answer=$(curl -sS --max-time 15 -H "Authorization: Bearer $api_token" "http://127.0.0.1:$api_port/v1/operations/trial-1")
  [[ $answer =~ \"state\":\ ?\"completed\" ]] || die "the operation should be completed: $answer"
  say "  an operation was registered, and a signed callback completed it"
  began=$SECONDS
  kill -TERM "$pid"
  while kill -0 "$pid" 2>/dev/null; do
    ((SECONDS - began < 32)) || die "the service does not end within drain.timeout of SIGTERM"
    sleep 0.1
  done
  say "  ended $((SECONDS - began)) s after SIGTERM"
}

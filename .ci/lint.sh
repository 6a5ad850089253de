# What `./dev lint` looks at. Sourced by ./dev, whose functions (say, die, step, setup) and paths it uses.
# shellcheck shell=bash disable=SC2154

cpp_files() { find src include tests bench -name node_modules -prune -o \( -name '*.cpp' -o -name '*.hpp' \) -print | sort; }
# A checkout may belong to another user than the one who checks it.
in_git() { git -c safe.directory="$root" "$@"; }

# The sources under src/ that clang-tidy reads: all, or those that differ from main; on main those of the last commit.
tidy_files() {
  local base
  if [ "${1-}" = --all ] || ! in_git rev-parse -q --verify HEAD >/dev/null 2>&1; then
    find src -name '*.cpp' | sort
    return
  fi
  base=$(in_git merge-base HEAD main 2>/dev/null || in_git merge-base HEAD origin/main 2>/dev/null || in_git rev-parse HEAD)
  if [ "$base" = "$(in_git rev-parse HEAD)" ] && [ -z "$(in_git status --porcelain -- src)" ]; then
    base=$(in_git rev-parse -q --verify HEAD~1 || in_git rev-parse HEAD)
  fi
  { in_git diff --name-only --diff-filter=d "$base" -- src && in_git ls-files -o --exclude-standard -- src; } | grep '\.cpp$' | sort -u
}

check_repository() {
  local problems=0 file name allowed markers
  problem() { printf '  %s\n' "$*" && problems=1; }
  markers='\b(TO[D]O|FIX[M]E|HAC[K]|XX[X])\b' # written so that this line does not find itself
  while IFS= read -r file; do problem "left-over marker: $file"; done < <(
    grep -rnIE "$markers" --exclude-dir=node_modules \
      src include migrations tests config web docker bench docs dev .ci README.md 2>/dev/null)
  while IFS= read -r file; do problem "a test that is skipped: $file"; done < <(
    grep -rnIE '(GTEST_SKI[P]|DISABLE[D]_|\.ski[p]\(|test\.tod[o])' tests web --exclude-dir=node_modules 2>/dev/null)
  for file in migrations/*.sql; do
    name=${file%.up.sql} name=${name%.down.sql}
    [[ $file =~ ^migrations/[0-9]{4}_[a-z0-9_]+\.(up|down)\.sql$ ]] || problem "migrations are named NNNN_subject.up.sql and .down.sql: $file"
    if [ ! -f "$name.up.sql" ] || [ ! -f "$name.down.sql" ]; then problem "a migration without its other half: $file"; fi
  done
  allowed=' CMakeLists.txt CMakePresets.json LICENSE README.md bench config dev docker docs include migrations src tests web '
  while IFS= read -r name; do
    [[ $name == .* || $allowed == *" $name "* ]] || problem "nothing else belongs at the top: $name"
  done < <(in_git ls-files --cached --others --exclude-standard 2>/dev/null | cut -d / -f 1 | sort -u)
  return "$problems"
}

lint() {
  local files failed='' limit=1000 scripts=(dev .ci/run .ci/*.sh tests/support/*.sh docker/verify config/debian/{verify,postinst,prerm,postrm})
  case "${1-}" in '' | --all) ;; *) wrong_use "lint knows only --all, not $1" ;; esac
  setup lint
  say "Repository rules"
  check_repository || failed+=' repository'
  say "Shell scripts"
  shellcheck "${scripts[@]}" || failed+=' shellcheck'
  say "Formatting"
  cpp_files | xargs -r clang-format --dry-run -Werror || failed+=' format(./dev fmt)'
  mapfile -t files < <(tidy_files "${1-}")
  [ -z "${CI-}" ] || [ "${1-}" = --all ] || limit=12 # bounded: up to half a minute a file
  say "clang-tidy on $((${#files[@]} < limit ? ${#files[@]} : limit)) of ${#files[@]} files${1:+ (all)}"
  if [ ${#files[@]} -gt 0 ]; then
    # Without precompiled headers, which are GCC's own; nothing is compiled here.
    step "Configuring for clang-tidy" configure-lint cmake -S . -B "$state/build/lint" -G Ninja \
      -DCMAKE_BUILD_TYPE=Debug -DRECIBO_PCH=OFF -DRECIBO_TESTS=OFF
    printf '%s\n' "${files[@]:0:limit}" |
      xargs -P "$(job_count)" -n 1 clang-tidy -p "$state/build/lint" --quiet 2>"$logs/clang-tidy.log" ||
      failed+=' clang-tidy'
  fi
  [ -z "$failed" ] || die "lint found problems:$failed"
  say "Nothing to complain about"
}

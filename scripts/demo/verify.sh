# What the demo shows and verifies. Sourced by demo.sh. Nothing here asks pgveil: both ends are asked by SQL.
# shellcheck shell=bash

# Of each table: the column that finds a row again, the columns that pass, and those that are masked. That the two lists
# hold every column is verified too.
declare -A ROW=([users]=id [addresses]=id [orders]=id [payments]=id [support_messages]=id)
declare -A PASSED=(
  [users]="id interests preferences created_at"
  [addresses]="id kind city country"
  [orders]="id status articles total details placed_at"
  [payments]="id order_id amount paid_at"
  [support_messages]="id rating sent_at"
)
declare -A MASKED=(
  [users]="customer_number full_name email phone birth_date"
  [addresses]="customer_number street postcode"
  [orders]="customer_number"
  [payments]="card_number card_holder iban"
  [support_messages]="customer_number subject body client_address"
)
# What identifies a person by itself, long enough that it is not found by chance: this must be nowhere at the target.
declare -A IDENTIFYING=(
  [users]="customer_number full_name email phone"
  [addresses]="customer_number street"
  [orders]="customer_number"
  [payments]="card_number card_holder iban"
  [support_messages]="customer_number subject body"
)

ok() { printf '  \033[32m✓\033[0m %s\n' "$*"; }
[[ -t 1 ]] || ok() { printf '  ok  %s\n' "$*"; }

commas() { sed 's/ /, /g' <<<"$*"; }

# show TABLE CONDITION COLUMN...: rows of the source and the same rows of the target, side by side.
# A row is found at the target by its passed key, since every column of the condition may be masked there.
show() {
  local table=$1 condition=$2 key name source target mark id
  shift 2
  key=${ROW[$table]}
  printf '  %-16s %-44s %s\n' "$table" source target
  while read -r id; do
    for name in "$@"; do
      source=$(cell source "$table" "$name" "$id")
      target=$(cell target "$table" "$name" "$id")
      mark=' '
      [[ $source == "$target" ]] || mark='▒'
      printf '  %-16s %s %s %s\n' "$name" "$(fit 42 "$source")" "$mark" "$(fit 42 "$target")"
    done
    echo
  done < <(ask source "SELECT $key FROM $table WHERE $condition ORDER BY $key")
}

cell() { ask "$1" "SELECT coalesce(regexp_replace($3::text, '\s+', ' ', 'g'), '∅') FROM $2 WHERE ${ROW[$2]} = '$4'"; }

# fit WIDTH TEXT: cut or padded to so many characters; printf's own padding counts bytes.
fit() {
  local text=$2
  ((${#text} <= $1)) || text=${text:0:$1-1}…
  printf '%s%*s' "$text" $(($1 - ${#text})) ''
}

# export_columns SIDE TABLE COLUMNS: the rows as COPY text, in the order of the passed key.
export_columns() {
  ask "$1" "COPY (SELECT $(commas "$3") FROM $2 ORDER BY ${ROW[$2]}) TO STDOUT"
}

# remember_originals: adds every identifying value that the source holds now to what is searched for at the end.
remember_originals() {
  local table name
  for table in "${TABLES[@]}"; do
    for name in ${IDENTIFYING[$table]}; do
      ask source "COPY (SELECT DISTINCT $name FROM $table WHERE $name IS NOT NULL) TO STDOUT"
    done
    # Of texts over several lines COPY writes an escaped form; one line of them is enough to be recognised by.
  done | sed 's/.*\\n//' | LC_ALL=C.UTF-8 awk 'length >= 8' >>"$WORK/originals"
  sort -u -o "$WORK/originals" "$WORK/originals"
}

verify_rows() {
  local table rows cells=0 passed=0 total=0 count listed actual
  for table in "${TABLES[@]}"; do
    listed=$(tr ' ' '\n' <<<"${PASSED[$table]} ${MASKED[$table]}" | sort | tr '\n' ' ')
    actual=$(ask source "SELECT attname FROM pg_attribute WHERE attrelid = '$table'::regclass AND attnum > 0" | sort | tr '\n' ' ')
    [[ $listed == "$actual" ]] || die "$table: the columns are $actual, verified are $listed"
    export_columns source "$table" "${PASSED[$table]}" >"$WORK/passed.source"
    export_columns target "$table" "${PASSED[$table]}" >"$WORK/passed.target"
    cmp -s "$WORK/passed.source" "$WORK/passed.target" ||
      die "$table: passed columns differ: $(diff "$WORK/passed.source" "$WORK/passed.target" | head -n 6)"
    rows=$(wc -l <"$WORK/passed.source")
    total=$((total + rows))
    passed=$((passed + rows * $(wc -w <<<"${PASSED[$table]}")))
    count=$(count_masked "$table")
    cells=$((cells + count))
  done
  ok "$total rows at both ends, in ${#TABLES[@]} tables"
  ok "$passed cells that pass are equal, byte by byte"
  ok "$cells cells that are masked are all different from their original, and NULL stayed NULL"
}

# count_masked TABLE: the masked values that are there; fails if one is its original, or NULL became a value.
count_masked() {
  local side
  for side in source target; do export_columns "$side" "$1" "${MASKED[$1]}" >"$WORK/masked.$side"; done
  paste "$WORK/masked.source" "$WORK/masked.target" | awk -F '\t' -v table="$1" -v names="${MASKED[$1]}" '
    BEGIN { columns = split(names, name, " ") }
    {
      for (i = 1; i <= columns; i++) {
        if ($i == "\\N" && $(i + columns) != "\\N") { print table "." name[i] ": NULL became a value" > "/dev/stderr"; exit 1 }
        if ($i != "\\N" && $i == $(i + columns)) { print table "." name[i] ": an original is at the target" > "/dev/stderr"; exit 1 }
        if ($i != "\\N") cells++
      }
    }
    END { print cells + 0 }' || die "$1: masked columns are not what the policy says"
}

verify_keys() {
  local keys='SELECT count(*) FROM pg_constraint WHERE contype = '"'f'"' AND convalidated AND connamespace = '"'public'::regnamespace"
  local source target shape
  source=$(ask source "$keys") target=$(ask target "$keys")
  [[ $source == "$target" && $source -gt 0 ]] || die "foreign keys: $source at the source, $target at the target"
  # The same orders, addresses and messages belong to the same people, though every number is another.
  shape="SELECT md5(string_agg(u.id || ':' || child, ',' ORDER BY u.id, child)) FROM users u JOIN (
           SELECT customer_number, 'o' || id AS child FROM orders UNION ALL SELECT customer_number, 'a' || id FROM addresses
           UNION ALL SELECT customer_number, 'm' || id FROM support_messages) c USING (customer_number)"
  [[ $(ask source "$shape") == "$(ask target "$shape")" ]] || die "foreign keys: rows of one person belong to another"
  ok "$target foreign keys hold at the target, and join the same rows through masked keys"
}

# verify_nothing_leaked: no original anywhere in the target's files (tables, indexes, WAL, log) nor in pgveil's own log.
# The same search must find them at the source, or it would prove nothing.
verify_nothing_leaked() {
  local originals bytes found
  originals=$(wc -l <"$WORK/originals")
  stop_server target fast
  found=$(LC_ALL=C grep -r -a -l -F -f "$WORK/originals" "$WORK/target" "$WORK/pgveil.log" || true)
  [[ -z $found ]] || die "originals found in: $found"
  found=$(LC_ALL=C grep -r -a -l -F -f "$WORK/originals" "$WORK/source/data" || true)
  [[ -n $found ]] || die "the search finds nothing at the source either: it proves nothing"
  bytes=$(du -sm "$WORK/target" | cut -f1)
  ok "none of $originals originals is in the target's $bytes MB of tables, indexes, WAL and log, nor in pgveil's log"
}

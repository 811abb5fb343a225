#!/usr/bin/env bash
# Runs the commands behind the documents' cheap figures again and compares what they give with what the documents say.
#   tools/check-figures.sh [PROGRAM]          figures of seconds: under a minute in all (part of ./test.sh unit)
#   tools/check-figures.sh PROGRAM --all      with those of minutes
# Scores may differ a little between processors, so they have a tolerance; counts have none. Figures of real graphs need CLUSTERGCN_DATA
# and are skipped without it. Times and memory of other machines are not compared.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-build/release/clustergcn}")
all=${2:-}
data=${CLUSTERGCN_DATA:-../shared/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compared=0 differing=0 skipped=0

# value KEY FILE: a number from the JSON that train printed, such as test.micro_f1
value() {
  python3 - "$1" "$2" <<'END'
import functools, json, sys
print(functools.reduce(lambda found, key: found[key], sys.argv[1].split('.'), json.load(open(sys.argv[2]))))
END
}
# figure DOCUMENT PATTERN TOLERANCE MEASURED: PATTERN is Perl's; what it matches after \K is the number in the document
figure() {
  local stated
  stated=$(grep -oP -m1 "$2" "$1" | head -n 1 | tr -d ', ') || { echo "$1: nothing matches $2" >&2; differing=$((differing + 1)); return; }
  compared=$((compared + 1))
  python3 -c 'import sys; s, m, t = map(float, sys.argv[1:]); sys.exit(abs(s - m) > t + 1e-9)' "$stated" "$4" "$3" && return
  differing=$((differing + 1))
  printf '%s: %s stands there, %.6g was measured (%s)\n' "$1" "$stated" "$4" "$2" >&2
}
# train NAME STORE OPTIONS …: the result is $work/NAME.json
train() {
  local name=$1 store=$2
  shift 2
  "$program" train "$store" --run "$work/run-$name" --json "$@" >"$work/$name.json" 2>"$work/$name.log" || { cat "$work/$name.log" >&2; exit 1; }
}
percent() { python3 -c 'import sys; print(100 * float(sys.argv[1]))' "$(value "$1" "$2")"; }
real() { [ -d "$data/$1" ] || { skipped=$((skipped + 1)); echo "skipped: $1 is not in CLUSTERGCN_DATA" >&2; return 1; }; }

# README: the built-in graph
"$program" generate "$work/small" --like small --quiet
train readme "$work/small" --recipe none --epochs 30
figure README.md 'Test F1 \K[0-9.]+' 0.8 "$(percent test.micro_f1 "$work/readme.json")"
figure README.md 'macro F1 \K[0-9.]+' 0.8 "$(percent test.macro_f1 "$work/readme.json")"
figure README.md 'validation F1 \K[0-9.]+' 0.8 "$(percent validation.micro_f1 "$work/readme.json")"

# docs/methods.md: embeddings per epoch, by depth
"$program" generate "$work/sparse" --nodes 40000 --edges 80000 --seed 3 --quiet
for method in cluster full-batch sgd graphsage fastgcn vrgcn; do
  for layers in 2 3; do
    train "$method-$layers" "$work/sparse" --recipe none --method $method --layers $layers --hidden 16 --epochs 3 --eval-every 1000 --parts 240 --per-batch 1 --batch-nodes 100
    column=$([ $layers = 2 ] && echo '' || echo '[0-9,]+ \| ')
    figure <(sed -n '/^| embeddings per epoch/,/^$/p' docs/methods.md) "^\\| $method \\| $column\\K[0-9,]+" 0 \
      "$(value embeddings_per_epoch "$work/$method-$layers.json")"
  done
done

# docs/methods.md, docs/results.md: Cora
if real cora; then
  "$program" import "$data/cora" "$work/cora" --quiet
  for seed in 1 2 3; do
    train "kipf-$seed" "$work/cora" --recipe kipf --batch-nodes 140 --parts 10 --eval-every 100 --seed $seed
    before=$(python3 -c "print('[0-9.]+, ' * ($seed - 1))")
    figure <(sed -n '/^| full-batch | cluster | sgd/,/^$/p' docs/methods.md) "^\\| $before\\K[0-9.]+(?=[,| ])" 0.8 "$(percent test.micro_f1 "$work/kipf-$seed.json")"
  done
fi
accuracy() {  # CASE FOLDER ROW
  real "$2" || return 0
  local line
  line=$(benchmarks/accuracy/run.py --program "$program" --data "$data" --only "$1" --settings recipe | tail -n 1)
  figure docs/results.md "^\\| $3[^|]*\\|[^|]*\\| \\K[0-9.]+" 0.35 "$(grep -oP '^\| [^|]*\| recipe \| \K[0-9.]+' <<<"$line")"
}
accuracy "amazon photo" amazon_photo "Amazon Photo"

if [ "$all" = --all ]; then
  accuracy cora cora "Cora, METIS"
  accuracy "cora, random partition" cora "Cora, random"
  accuracy citeseer citeseer Citeseer
  accuracy "coauthor cs" coauthor_cs "Coauthor CS"
  "$program" generate "$work/ppi" --like ppi --quiet
  benchmarks/methods/scores.py "$program" "$work/ppi" --epochs 20 --full-batch-epochs 300 -- \
    --layers 2 --hidden 256 --parts 50 --per-batch 1 --lr 0.01 --dropout 0.1 >"$work/ppi.md"
  for method in cluster full-batch sgd graphsage fastgcn vrgcn; do
    figure <(sed -n '/^| PPI shape/,/^$/p' docs/methods.md) "^\\| $method \\| \\K[0-9.]+" 0.8 "$(grep -oP "^\\| $method \\| \\K[0-9.]+" "$work/ppi.md")"
  done
  (cd "$work" && "$program" reproduce diagonal --output diagonal --quiet >/dev/null)
  for row in "A'" 'Ã' 'Ã \+ I' 'Ã \+ λ·diag\(Ã\)'; do
    for before in 0 1 2 3 4; do  # deeper ones depend on the seed, as the text says
      skip=$(python3 -c "print('[0-9.]+ [^|]*\\\\| ' * $before)")
      figure <(sed -n '/^### Table 11/,/^This differs/p' docs/reproduction.md) "^\\| $row \\| $skip\\K[0-9.]+" 1.5 \
        "$(grep -oP "^\\| $row \\| [^|]*\\| ([^|]*\\|[^|]*\\| ){$before}\\K[0-9.]+" "$work/diagonal/diagonal-small.md" | head -n 1)"
    done
  done
fi
echo "$compared figures compared, $differing differ, $skipped skipped"
[ "$differing" -eq 0 ]

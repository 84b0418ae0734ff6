#!/usr/bin/env bash
# A retina grader: from a file with scores of a network to a report, without Python.
#
# docs/scores/retinamnist.csv.gz has the logits of a ResNet-34 for 520 retina photographs and the grade, 0 (healthy)
# to 4 (proliferative retinopathy), that doctors gave. Missing a severe grade is worse: weights 1, 1, 2, 4, 4.
#
#     examples/retina_grader.sh [FOLDER]        needs pip install ".[report]"
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-retina}
mkdir -p "$out"

# Every second photograph calibrates, the others test. The order of the file says nothing about the grade.
gunzip --stdout "$here/../docs/scores/retinamnist.csv.gz" > "$out/all.csv"
awk 'NR == 1 || NR % 2' "$out/all.csv" > "$out/calibration.csv"
awk 'NR == 1 || NR % 2 == 0' "$out/all.csv" > "$out/test.csv"

# The columns logit_0 .. logit_4 and label are found by their names.
ordinalrisk calibrate "$out/calibration.csv" --weights 1,1,2,4,4 --alpha 0.1 -o "$out/cal.json"

# New rows need no label column: the scores are enough, and the column with the name is copied.
cut -d, -f1,3- "$out/test.csv" > "$out/new.csv"
ordinalrisk predict "$out/cal.json" "$out/new.csv" -o "$out/sets.csv"
head -n 4 "$out/sets.csv"

ordinalrisk evaluate "$out/cal.json" "$out/test.csv"
ordinalrisk report "$out/cal.json" "$out/test.csv" -o "$out/report.html"

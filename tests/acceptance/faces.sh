#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/faces.sh [--quick]
# --quick leaves out what trains for minutes. Personas, ten-second tests and screenshots are no commands: the closing note has them.
. "$(dirname "$0")/common.sh"
stab="python3 '$root/dev.py'"
cd "$root"
said() { bash -c "$stab $1 2>&1 | grep -q -- '$2'"; }
all="slow or not slow or libraries"

# — Pages
block "the first figure of a sweep: methods × depths, a strip of four links a cell, with 4, 13 and 23 methods" dev test tests/figures -k "chain_order or which_link or strip" -m "$all"
block "headlines of at most 90 characters; the title is the same sentence" dev test tests/report/test_answer.py tests/report/test_html.py tests/test_findings.py -k "headline or title" -m "$all"
block "one state, one word" bash -c "! grep -rnE 'open\\?|could go either way' stabkit --include=*.py --include=*.j2"
block "captions say what this picture shows; none contradicts its figure" dev test tests/report/test_captions.py -m "$all"
block "landscape: the answer, the surfaces of one seed, contours; drawn in print" dev test tests/surface tests/report/test_report_in_browser.py -k "surface or print or paper" -m "$all"
block "a page a method" bash -c "[ \$(ls docs/methods/*.md | wc -l) -ge 32 ]"
block "an exponent wider than its value is not printed; data and seeds are named" dev test tests/report -k "vague or exponent or condition or one_number" -m "$all"
block "axe-core, narrow screens, keyboard, print, themes" dev test tests/report/test_report_in_browser.py -m "$all"

# — Terminal
block "table, answer, page, next; claims in one line; 80 columns; names of runs" dev test tests/cli/test_cli.py tests/cli/test_front.py -m "$all"
block "one grammar: FILE:NAME and module:name, commas and spaces, did you mean, --seeds 5" dev test tests/options tests/cli/test_own_files.py -m "$all"
block "--steps 0 says what it does" said "sweep --steps 0 --depths 2 --models deepnorm --out '$work/zero'" "No update was made"
block "stabkit watch tells of the two lines of Python" said "watch" "stabkit.watch(model, optimizer)"
block "after a warning or a failure: what to do next, as a command" dev test tests/cli/test_probe_command.py -m "$all"

# — Words
block "the glossary in every visible string" dev test tests/report/test_own_words.py tests/report/test_reworded.py tests/test_docs.py -k "not tutorial" -m "$all"

# — A page of a user's model looks like ours
block "the same matrix, the same words; its screenshot in the README" bash -c "grep -q 'docs/own_page.png' README.md && grep -q 'class=\"matrix' reports/probe-gpt2.html"
exit $failed

#!/usr/bin/env bash
# Writes a header that contains files as string literals: k_status_css for status.css.
#
#   embed_page.sh FILE... > page_files.h
set -euo pipefail

echo 'namespace muster::internal {'
for file in "$@"; do
  name=$(basename "$file" | tr . _)
  echo "inline constexpr char k_$name[] = "
  echo 'R"page('
  cat "$file"
  echo ')page";'
done
echo '}  // namespace muster::internal'

#!/bin/sh
# Measures disk space; a program skill for Toolyard that needs nothing but a POSIX shell.
#
#     disk_usage.sh --describe     prints the tool's description
#     disk_usage.sh disk_usage     reads {"path": "..."} on stdin, prints {"path", "kilobytes", "complete"}
#
# A shell cannot read JSON, so only one exact form is accepted: an object with at most the key "path", whose value is
# made of harmless characters. What was read is never evaluated and never printed unless it has that form.

set -u
LC_ALL=C
export LC_ALL

if [ "${1-}" = "--describe" ]; then
    cat <<'JSON'
{
  "name": "disk_usage",
  "title": "Disk usage",
  "description": "Measure how much disk space a file or folder takes, in kilobytes",
  "inputSchema": {
    "type": "object",
    "properties": {
      "path": {
        "type": "string",
        "description": "The file or folder; the working folder when absent",
        "pattern": "^[A-Za-z0-9._/ -]+$",
        "maxLength": 1024
      }
    },
    "additionalProperties": false
  },
  "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false}
}
JSON
    exit 0
fi

input=$(head -c 4096 | tr '\n\r\t' '   ')
path=$(printf '%s\n' "$input" |
    sed -n 's/^ *{ *"path" *: *"\([A-Za-z0-9._/ -]\{1,1024\}\)" *} *$/\1/p')
if [ -z "$path" ]; then
    case $(printf '%s' "$input" | tr -d ' ') in
    '{}') path=. ;;
    *)
        echo '{"error": "the only argument is `path`, made of letters, digits, spaces and . _ - /"}'
        exit 0
        ;;
    esac
fi

# A path that begins with a hyphen must not be read as an option.
case $path in
-*) path=./$path ;;
esac
if [ ! -e "$path" ]; then
    printf '{"error": "there is no file or folder %s"}\n' "$path"
    exit 0
fi

complete=true
line=$(du -sk "$path" 2>/dev/null) || complete=false
kilobytes=$(printf '%s\n' "$line" | sed -n '$s/^\([0-9][0-9]*\).*$/\1/p')
if [ -z "$kilobytes" ]; then
    printf '{"error": "failed to measure %s"}\n' "$path"
    exit 0
fi
printf '{"path": "%s", "kilobytes": %s, "complete": %s}\n' "$path" "$kilobytes" "$complete"

#!/usr/bin/env bash
# Says running, success or failed of one job, without the accounting database where there is none.
state=$(scontrol --oneliner show job "$1" 2>/dev/null | grep -o 'JobState=[A-Z_]*' | head -n 1 | cut -d= -f2)
if [[ -z $state ]]; then
  state=$(sacct --allocations --noheader --parsable2 --jobs="$1" --format=State 2>/dev/null | head -n 1 | cut -d' ' -f1)
fi
case $state in
  COMPLETED) echo success ;;
  PENDING | CONFIGURING | RUNNING | COMPLETING | SUSPENDED | REQUEUED) echo running ;;
  *) echo failed ;;
esac

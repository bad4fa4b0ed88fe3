#!/bin/sh
# A coding agent with memory: Claude Code talks to Threadkeep instead of Anthropic's API. Other agents: npm run agents.
# Run: sh coding-agent.sh "Which files are in this folder?"
# Needs: npm install threadkeep. In a checkout: npm start, then THREADKEEP_URL=http://127.0.0.1:4848 sh examples/coding-agent.sh.
set -eu

if [ -z "${THREADKEEP_URL:-}" ]; then
  port=${PORT:-4848}
  THREADKEEP_URL="http://127.0.0.1:$port"
  npx threadkeep serve --port "$port" >&2 &
  server=$!
  trap 'kill $server 2>/dev/null' EXIT
  ready="fetch('$THREADKEEP_URL/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"
  until node -e "$ready"; do
    kill -0 $server 2>/dev/null || exit 1
    sleep 0.2
  done
fi

# The agent sends an id of its own with every request, which is the session. The key may be any text without a model.
ANTHROPIC_BASE_URL="$THREADKEEP_URL" ANTHROPIC_API_KEY="${ANTHROPIC_API_KEY:-any}" \
  npx --yes @anthropic-ai/claude-code --print "${1:-Say hello.}"

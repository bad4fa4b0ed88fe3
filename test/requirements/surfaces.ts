import type { Row } from './row.ts'

const source = 'Threadkeep'

export const surfaces: readonly Row[] = [
  {
    id: 'S-01',
    source,
    behaviour:
      'Two commands work on a fresh clone: one starts the server with the embedded store and no key, the other passes all tests.',
    status: 'kept',
    in: ['src/cli/main.ts'],
  },
  {
    id: 'S-02',
    source,
    behaviour:
      'Every subcommand of the command has `--help`, `--json`, documented exit codes, and progress on long work.',
    status: 'kept',
    in: ['src/cli/program.ts', 'src/cli/run.ts', 'src/cli/terminal/help.ts', 'src/cli/terminal/progress.ts'],
  },
  {
    id: 'S-03',
    source,
    behaviour:
      'Clients work by changing the base URL: `openai`, `ai`, `@langchain/openai`, `@openai/agents`, `@anthropic-ai/sdk`; coding agents (Claude Code, Codex, opencode, Continue, Cline).',
    status: 'kept',
    in: ['src/server/modelRoutes.ts', 'src/server/protocols/responses.ts', 'src/server/protocols/messages.ts'],
  },
  {
    id: 'S-04',
    source,
    behaviour:
      'The MCP server passes the conformance suite and the strict inspector, and is a drop-in replacement for the reference memory server.',
    status: 'kept',
    in: ['src/mcp/server.ts', 'src/mcp/tools/reference.ts', 'src/graph/sqlite/nodes.ts'],
  },
  {
    id: 'S-05',
    source,
    behaviour: 'An inspector page at `/`.',
    status: 'kept',
    in: ['inspector/src/app.tsx', 'src/server/api/inspector.ts', 'src/server/api/events.ts'],
  },
  {
    id: 'S-06',
    source,
    behaviour:
      "Adapters that pass the other side's own tests: AI SDK middleware, LangChain history and LangGraph store and checkpointer, OpenAI Agents session, Anthropic memory tool.",
    status: 'planned',
  },
  {
    id: 'S-07',
    source,
    behaviour: 'OpenAPI 3.1, health, readiness, Prometheus metrics, OpenTelemetry traces.',
    status: 'kept',
    in: [
      'src/server/openapi/openapi.ts',
      'src/server/observability/metrics.ts',
      'src/server/observability/tracing.ts',
      'src/server/observability/readiness.ts',
    ],
  },
  {
    id: 'S-08',
    source,
    behaviour: 'Storage disabled: a request with `x-threadkeep-store: false` uses memory and stores nothing.',
    status: 'kept',
    in: ['src/server/turn/outgoingPrompt.ts', 'src/server/turn/handleTurn.ts'],
  },
  {
    id: 'S-09',
    source,
    behaviour:
      'One person across sessions: a profile can let a session read the memory of its scope or person (`scopes`), opt-in, with the sources in the receipt. The library, the command, MCP and the REST API write it.',
    status: 'kept',
    in: [
      'src/memory/contextBuilder.ts',
      'src/memory/knowledge.ts',
      'src/mcp/tools/knowledge.ts',
      'src/cli/remember.ts',
    ],
  },
  {
    id: 'S-10',
    source,
    behaviour:
      'Cost: each receipt reports the tokens saved and cacheable, and the cost by a price table that the user can replace.',
    status: 'kept',
    in: [
      'src/server/receipts.ts',
      'src/server/observability/prices.ts',
      'src/server/turn/accounting.ts',
      'src/server/turn/turnMeter.ts',
      'src/server/upkeepAccounting.ts',
    ],
  },
]

import type { Row } from './row.ts'

const source = 'Threadkeep'

export const surfaces: readonly Row[] = [
  {
    id: 'S-01',
    source,
    behaviour: 'Two commands on a fresh clone: one serves on the embedded default with no key, one passes all tests.',
    status: 'kept',
    in: ['src/cli/main.ts'],
  },
  {
    id: 'S-02',
    source,
    behaviour:
      'The command: every subcommand with `--help`, `--json`, documented exit codes, and progress on long work.',
    status: 'planned',
  },
  {
    id: 'S-03',
    source,
    behaviour:
      'Clients by base URL: `openai`, `ai`, `@langchain/openai`, `@openai/agents`, `@anthropic-ai/sdk`; coding agents (Claude Code, Codex, opencode, Continue, Cline).',
    status: 'kept',
    in: ['src/server/modelRoutes.ts', 'src/server/protocols/responses.ts', 'src/server/protocols/messages.ts'],
  },
  {
    id: 'S-04',
    source,
    behaviour: 'MCP: conformance, strict inspector, drop-in for the reference memory server.',
    status: 'kept',
    in: ['src/mcp/server.ts', 'src/mcp/tools/reference.ts', 'src/graph/nodes.ts'],
  },
  { id: 'S-05', source, behaviour: 'The inspector page.', status: 'planned' },
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
    behaviour: 'OpenAPI 3.1, health, readiness, Prometheus, OpenTelemetry.',
    status: 'kept',
    in: [
      'src/server/openapi/openapi.ts',
      'src/server/observability/metrics.ts',
      'src/server/observability/spans.ts',
      'src/server/observability/ready.ts',
    ],
  },
  {
    id: 'S-08',
    source,
    behaviour: 'Off the record: a request with `x-threadkeep-store: false` is answered with memory and leaves none.',
    status: 'kept',
    in: ['src/server/turn/outgoingPrompt.ts', 'src/server/turn/handleTurn.ts'],
  },
  {
    id: 'S-09',
    source,
    behaviour:
      "One person across sessions: a profile may let a session see the scope's or the person's memory (`sees`), opt-in, with the sources in the receipt.",
    status: 'kept',
    in: ['src/memory/contextBuilder.ts', 'src/context/sharedEntries.ts'],
  },
  {
    id: 'S-10',
    source,
    behaviour:
      'Money: each receipt tells the tokens saved and cacheable, and the cost by a price table the user can replace.',
    status: 'kept',
    in: ['src/server/receipts.ts', 'src/server/observability/prices.ts', 'src/server/turn/accounting.ts'],
  },
]

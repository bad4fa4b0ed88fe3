import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseKey, parseScope } from '../domain/key.ts'
import type { Model, ModelRequest, Store, Tokenizer } from '../domain/ports.ts'
import { isUserSession } from '../domain/session.ts'
import type { Memory } from '../memory.ts'
import { formatCount } from '../text/formatCount.ts'
import type { UpkeepRunResult } from '../upkeep/upkeep.ts'
import { addProviderOptions, apiKeyHelp, type ProviderFlags, selectProvider } from './chat/providerOptions.ts'
import { addStoreOptions, listSessions, openExistingStore, requireSession, type StoreFlags } from './openStore.ts'
import { readOption } from './options.ts'
import { loadProfile } from './replay.ts'
import { option, setHelp } from './terminal/help.ts'
import { interruptible } from './terminal/interrupt.ts'
import { type Line, printResult } from './terminal/output.ts'
import { createProgress } from './terminal/progress.ts'
import { formatTable } from './terminal/table.ts'

type Flags = StoreFlags &
  ProviderFlags & {
    readonly scope?: string
    readonly all?: boolean
    readonly force?: boolean
    readonly profile?: string
  }

export function addUpkeepCommand(program: Command): void {
  const upkeep = setHelp(program.command('upkeep').description('extract facts and summarise sessions now'), {
    examples: ['threadkeep upkeep run demo:me', 'threadkeep upkeep run --all'],
  })
  const command = addProviderOptions(addStoreOptions(upkeep.command('run')), 'the built-in rules, which need no model')
    .description('extract the facts of sessions, and summarise those that have grown')
    .argument('[key]', 'session, as scope:session')
    .option('--scope <name>', 'all sessions of this scope')
    .option('--all', 'all sessions of the store')
    .option('--force', 'also summarise sessions that are still short: all but the last two messages')
    .addOption(
      option('--profile <name>', 'profile whose rules apply: a name, or a JSON file', {
        env: ['THREADKEEP_PROFILE'],
        fallback: 'thread',
      }),
    )
    .action(run)
  setHelp(command, {
    details: [
      'threadkeep serve and threadkeep chat do this by themselves when a session has grown. Messages are kept in full. With a model, its output is stored only if it passes verification, and its tokens and cost are listed.',
    ],
    variables: apiKeyHelp,
    examples: [
      'threadkeep upkeep run demo:me',
      'threadkeep upkeep run demo:me --force',
      'threadkeep upkeep run --scope acme --provider openai --model gpt-5.4-mini',
      'threadkeep upkeep run --all --json',
    ],
  })
}

/** Tokens that were sent to a model and received from it. */
type Usage = { readonly prompt: number; readonly completion: number }

type SessionReport = {
  readonly key: string
  readonly facts: number
  readonly summaries: number
  readonly tokens: Usage
  /** US dollars; null if the price of the model is unknown. */
  readonly cost: number | null
  readonly degraded: UpkeepRunResult['degraded']
}

async function run(text: string | undefined, flags: Flags): Promise<void> {
  checkTarget(text, flags)
  const profile = await loadProfile(readOption(flags.profile, process.env, 'THREADKEEP_PROFILE') ?? 'thread', 'profile')
  const settings = selectProvider(flags, process.env)
  const [{ openMemory }, { createModel }, { tokenizerNamed }] = await Promise.all([
    import('../index.ts'),
    import('../providers/provider.ts'),
    import('../tokenizers/tokenizers.ts'),
  ])
  const tokenizer = await tokenizerNamed(profile.tokenizer)
  const meter = settings === undefined ? undefined : new MeteredModel(createModel(settings), tokenizer)
  const store = await openExistingStore(flags, process.env)
  // Sessions are in a file, so a RAM-only profile must accept a durable store.
  await using memory = await openMemory({
    store,
    profile: { ...profile, durability: 'durable' },
    ...(meter === undefined ? {} : { model: meter }),
  })
  const reports = await interruptible((signal) => runSessions(memory, store, text, flags, { meter, signal }))
  printResult(flags.json, { items: reports }, formatReports(reports, flags))
  if (reports.some(({ degraded }) => degraded.length > 0)) process.exitCode = 1
}

function checkTarget(text: string | undefined, { scope, all }: Flags): void {
  const targets = [text, scope, all].filter((target) => target !== undefined).length
  if (targets === 1) return
  throw new MemoryError(
    'bad-option',
    `${targets === 0 ? 'Name a session' : 'Name only one'}: scope:session, --scope NAME or --all.`,
    { param: 'key' },
  )
}

type RunDeps = { readonly meter: MeteredModel | undefined; readonly signal: AbortSignal }

async function runSessions(
  memory: Memory,
  store: Store,
  text: string | undefined,
  flags: Flags,
  { meter, signal }: RunDeps,
): Promise<readonly SessionReport[]> {
  using progress = createProgress(flags)
  progress.step('Listing sessions')
  const keys = await listTargets(store, text, flags)
  const reports: SessionReport[] = []
  for (const key of keys) {
    if (signal.aborted)
      throw new MemoryError(
        'aborted',
        `Interrupted after ${reports.length} of ${formatCount(keys.length, 'session')}. Run it again for the others.`,
      )
    progress.count('Upkeep of sessions', reports.length, keys.length)
    const { facts, summaries, degraded } = await memory.upkeep.run(key, { summarise: flags.force === true })
    // Built-in rules cost nothing.
    const tokens = meter?.takeUsage() ?? { prompt: 0, completion: 0 }
    const cost = meter === undefined ? 0 : await findCost(meter.name, tokens)
    reports.push({
      key: formatKey(key),
      facts: facts.length,
      summaries: summaries.length,
      tokens,
      cost,
      degraded,
    })
  }
  return reports
}

async function listTargets(store: Store, text: string | undefined, flags: Flags): Promise<readonly Key[]> {
  if (text !== undefined) return [(await requireSession(store, parseKey(text))).key]
  const keys: Key[] = []
  const scope = flags.scope === undefined ? undefined : parseScope(flags.scope)
  for await (const session of listSessions(store, scope))
    if (isUserSession(session) && session.messages > 0) keys.push(session.key)
  return keys
}

function formatReports(reports: readonly SessionReport[], { force }: Flags): Line[] {
  if (reports.length === 0) return ['No sessions with messages.']
  const rows = reports.map(({ key, facts, summaries, tokens, cost, degraded }) => [
    key,
    `${facts}`,
    `${summaries}`,
    `${tokens.prompt + tokens.completion}`,
    cost === null ? 'unknown' : `$${cost.toFixed(4)}`,
    degraded.map(({ step, why }) => `${step}: ${why}`).join('; '),
  ])
  const header = ['session', 'new facts', 'new summaries', 'model tokens', 'cost', '']
  const hasNoSummaries = force !== true && reports.every(({ summaries }) => summaries === 0)
  return [
    ...formatTable([header, ...rows], { header: true, numeric: new Set([1, 2, 3, 4]) }),
    ...(hasNoSummaries ? ['No summary was due. Add --force to summarise short sessions too.'] : []),
  ]
}

/** A model that counts the tokens of its calls. */
class MeteredModel implements Model {
  readonly name: string
  private readonly model: Model
  private readonly tokenizer: Tokenizer
  private prompt = 0
  private completion = 0

  constructor(model: Model, tokenizer: Tokenizer) {
    this.name = model.name
    this.model = model
    this.tokenizer = tokenizer
  }

  async *reply(request: ModelRequest, signal?: AbortSignal): AsyncIterable<string> {
    const { overhead } = this.tokenizer
    for (const { content } of request.messages)
      this.prompt += overhead.message + (content === null ? 0 : this.tokenizer.count(content))
    const chunks: string[] = []
    try {
      for await (const chunk of this.model.reply(request, signal)) {
        chunks.push(chunk)
        yield chunk
      }
    } finally {
      this.completion += this.tokenizer.count(chunks.join(''))
    }
  }

  /** Returns the tokens since the last call. */
  takeUsage(): Usage {
    const { prompt, completion } = this
    this.prompt = 0
    this.completion = 0
    return { prompt, completion }
  }
}

/** Returns the published price of tokens; null if it is unknown. */
async function findCost(model: string, usage: Usage): Promise<number | null> {
  const [{ computeRequestCost }, { publishedPrices }] = await Promise.all([
    import('../server/observability/prices.ts'),
    import('../server/observability/publishedPrices.ts'),
  ])
  return computeRequestCost(publishedPrices, model, usage)?.total ?? null
}

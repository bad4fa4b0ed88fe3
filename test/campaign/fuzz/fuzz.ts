import type { Json } from '../../../src/domain/entry.ts'
import { largeValue } from '../hostile.ts'
import type { Counter, Finding, Part, Replayer, RunOptions } from '../part.ts'
import { Random, seedOf } from '../random.ts'
import { textSurfaces, toStep } from '../textSurfaces.ts'
import { CliTarget, cliCommand } from './cliCommands.ts'
import { httpRequest, rawRequest, toolCall } from './httpRequests.ts'
import type { Step } from './input.ts'
import { checkAnswer, isBusy, type Problem, type SizeClass, sizeClassOf, sizeOf } from './oracle.ts'
import { startTarget, type Target } from './target.ts'
import { ToolClient } from './toolClient.ts'

/** Steps that run at the same time. Their stretches add up, so a long one is looked for among them alone. */
const batchSize = 64
/** Larger steps run alone. */
const maxConcurrentBytes = 20_000
/** Inputs after which the server is stopped, its store checked, and a new one started. */
const inputsPerServer = 40_000
const maxRssBytes = 2_000_000_000
/**
 * A stretch that does not repeat contains compilation or garbage collection, and that of a batch the work of up to 16
 * requests; those stay below these multiples of the limit.
 */
const maxSingleFactor = 5
const maxBatchFactor = 20
/** Earlier steps that are tried together with one that does not fail alone. */
const historySize = 200

const generateStep = (random: Random): Step =>
  random.weighted<() => Step>([
    [1_000, () => httpRequest(random)],
    [3, () => rawRequest(random)],
    [15, () => toolCall(random)],
    [10, () => cliCommand(random)],
    [0.6, () => largeRequest(random)],
  ])()

/** A large value through one of the surfaces that store text. */
const largeRequest = (random: Random): Step => {
  const bytes = random.weighted([
    [6, 60_000],
    [3, 900_000],
    [1, 4_000_000],
  ])
  return toStep(random.pick(textSurfaces), largeValue(random, bytes), random.int(0, 1_000))
}

const busyKind = 'busy without other requests'

/** Everything that steps are run on. */
class Targets implements AsyncDisposable {
  readonly server: Target
  private readonly tools: ToolClient
  private readonly cli: CliTarget

  private constructor(server: Target, tools: ToolClient) {
    this.server = server
    this.tools = tools
    this.cli = new CliTarget()
  }

  static async start(): Promise<Targets> {
    const server = await startTarget()
    return new Targets(server, await ToolClient.connect(server))
  }

  /** Runs a step and returns its problems. */
  async run(step: Step): Promise<readonly Problem[]> {
    if (step.surface === 'http') {
      const answer = await this.server.send(step)
      return isBusy(answer)
        ? [{ kind: `${busyKind} ${step.route}`, detail: answer.body.slice(0, 300) }]
        : checkAnswer(this.server, step, answer)
    }
    if (step.surface === 'cli') return this.cli.run(step)
    if (step.surface === 'tool') return this.tools.call(step)
    const { status, body } = await this.server.sendRaw(step)
    return status >= 500 || body.includes(this.server.folder)
      ? [{ kind: `raw ${status}`, detail: body.slice(0, 200) }]
      : []
  }

  /** Runs a step alone; returns its problems and the longest stretch. */
  async runAlone(step: Step): Promise<{ readonly problems: readonly Problem[]; readonly stretchMs: number }> {
    await this.server.state()
    const problems = await this.run(step)
    const { stretchMs, faults } = await this.server.state()
    return { problems: [...problems, ...faults.map(faultProblem)], stretchMs }
  }

  /** Returns the shortest stretch of up to three runs of a step: the first one includes compilation. */
  async shortestStretch(step: Step): Promise<number> {
    const { maxStretchMs } = sizeClassOf(step)
    let shortest = Number.POSITIVE_INFINITY
    for (let times = 0; times < 3 && shortest > maxStretchMs; times++)
      shortest = Math.min(shortest, (await this.runAlone(step)).stretchMs)
    return shortest
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.tools.close()
    await this.server[Symbol.asyncDispose]()
    this.cli[Symbol.dispose]()
  }
}

const nameOf = (step: Step): string =>
  step.surface === 'http' ? step.route : step.surface === 'tool' ? step.name : step.surface

const faultProblem = (fault: string): Problem => ({
  kind: `fault ${/\bat [^ ]+ .*?([\w./]+:\d+)/.exec(fault)?.[1] ?? fault.split(/[:\n]/)[0]}`,
  detail: fault.slice(0, 600),
})

/** Describes a stretch that is longer than allowed. */
const stallProblem = (step: Step, stretchMs: number, kind = 'stall'): Problem => ({
  kind: `${kind} ${nameOf(step)} ${sizeClassOf(step).name}`,
  detail: `${Math.round(stretchMs)} ms`,
})

/** The part of the targets that a run uses. */
export type FuzzTargets = Pick<Targets, 'run' | 'runAlone' | 'shortestStretch'> & {
  readonly server: Pick<Target, 'state'>
}

/** A run of steps on one server. */
export class FuzzRun {
  private readonly options: RunOptions
  private readonly counter: Counter
  private readonly targets: FuzzTargets
  private readonly history: Step[] = []

  constructor(targets: FuzzTargets, options: RunOptions) {
    this.targets = targets
    this.options = options
    this.counter = options.counter
  }

  async runBatch(steps: readonly Step[]): Promise<void> {
    const small = steps.filter((step) => sizeOf(step) <= maxConcurrentBytes)
    const busy: Step[] = []
    await Promise.all(small.map((step) => this.runOne(step, busy)))
    const { stretchMs, faults, rssBytes } = await this.targets.server.state()
    for (const fault of faults) this.report(faultProblem(fault), small)
    this.counter.max('max RSS (MB)', Math.round(rssBytes / 1e6))
    if (rssBytes > maxRssBytes) this.report({ kind: 'RSS', detail: `${rssBytes} bytes` }, small)
    const [first] = small
    if (first !== undefined) {
      const sizeClass = sizeClassOf(first)
      this.counter.add(`stalls ${sizeClass.name}: inputs`, small.length)
      if (stretchMs > sizeClass.maxStretchMs) await this.findStall(small, stretchMs)
      else this.countStretch(sizeClass, stretchMs)
    }
    for (const step of busy) for (const problem of await this.targets.run(step)) this.report(problem, [step])
    for (const step of steps) if (!small.includes(step)) await this.runLarge(step)
  }

  private async runOne(step: Step, busy: Step[]): Promise<void> {
    const problems = await this.targets.run(step)
    this.counter.add(`${step.surface} inputs`)
    for (const problem of problems) {
      if (!problem.kind.startsWith(busyKind)) this.report(problem, [step])
      else {
        this.counter.add('busy responses')
        busy.push(step)
      }
    }
    this.history.push(step)
    if (this.history.length > historySize) this.history.shift()
  }

  private async runLarge(step: Step): Promise<void> {
    const { problems, stretchMs } = await this.targets.runAlone(step)
    const sizeClass = sizeClassOf(step)
    this.counter.add(`${step.surface} inputs`)
    this.counter.add(`stalls ${sizeClass.name}: inputs`)
    for (const problem of problems) this.report(problem, [step])
    if (stretchMs <= sizeClass.maxStretchMs) this.countStretch(sizeClass, stretchMs)
    else if (!(await this.confirmStall(step))) this.countSingle([step], stretchMs)
  }

  /** Looks for the step of a batch that takes long alone. Stretches of steps at the same time add up. */
  private async findStall(steps: readonly Step[], batchMs: number): Promise<void> {
    this.counter.add('batches run again')
    let hasStall = false
    for (const step of steps) {
      const { stretchMs } = await this.targets.runAlone(step)
      if (stretchMs > sizeClassOf(step).maxStretchMs && (await this.confirmStall(step))) hasStall = true
    }
    if (!hasStall) this.countSingle(steps, batchMs)
  }

  /** Runs a step again; reports it if it takes long each time. */
  private async confirmStall(step: Step): Promise<boolean> {
    const sizeClass = sizeClassOf(step)
    const stretchMs = await this.targets.shortestStretch(step)
    this.countStretch(sizeClass, stretchMs)
    if (stretchMs <= sizeClass.maxStretchMs) return false
    this.report(stallProblem(step, stretchMs), [step])
    return true
  }

  private countStretch({ name }: SizeClass, stretchMs: number): void {
    for (const limitMs of [50, 250]) this.counter.add(`stalls ${name}: over ${limitMs} ms`, stretchMs > limitMs ? 1 : 0)
    this.counter.max(`stalls ${name}: longest (ms)`, Math.round(stretchMs))
  }

  /** Counts a long stretch that did not repeat; reports one that is too long for compilation and garbage collection. */
  private countSingle(steps: readonly Step[], stretchMs: number): void {
    const { name, maxStretchMs } = sizeClassOf(steps[0] as Step)
    this.counter.add(`stalls ${name}: not repeated`)
    this.counter.max(`stalls ${name}: longest not repeated (ms)`, Math.round(stretchMs))
    if (stretchMs > (steps.length > 1 ? maxBatchFactor : maxSingleFactor) * maxStretchMs)
      this.report(stallProblem(steps[0] as Step, stretchMs, `single stall in ${steps.length}`), steps)
  }

  private report({ kind, detail }: Problem, steps: readonly Step[]): void {
    const input = toInput(steps)
    this.options.onFinding({ kind, detail, input, longInput: toInput([...this.history, ...steps]) })
  }
}

const toInput = (steps: readonly Step[]): Json => ({ steps: steps as unknown as Json[] })

async function run(options: RunOptions): Promise<number> {
  const { counter } = options
  let done = 0
  while (done < options.inputs && !options.isOver()) {
    await using targets = await Targets.start()
    const fuzzRun = new FuzzRun(targets, options)
    const end = Math.min(options.inputs, done + inputsPerServer)
    while (done < end && !options.isOver()) {
      const size = Math.min(batchSize, end - done)
      const steps = Array.from({ length: size }, (_, at) => generateStep(new Random(seedOf(options.seed, done + at))))
      await fuzzRun.runBatch(steps)
      done += size
      options.onProgress(done)
    }
    counter.add('server CPU (ms)', Math.round((await targets.server.state()).cpuMs))
    for (const damage of (await targets.server.finish()).damage)
      options.onFinding({ kind: 'damaged store', detail: damage, input: { steps: [], seed: options.seed } })
  }
  const { user, system } = process.cpuUsage()
  counter.add('client CPU (ms)', Math.round((user + system) / 1_000))
  return done
}

/** Runs the steps of an input in order and returns the problems of all. */
async function openReplayer(): Promise<Replayer> {
  const targets = await Targets.start()
  return {
    replay: async (input) => {
      const findings: Finding[] = []
      for (const step of parseSteps(input)) {
        const { problems, stretchMs } = await targets.runAlone(step)
        const { maxStretchMs } = sizeClassOf(step)
        const shortestMs = stretchMs > maxStretchMs ? await targets.shortestStretch(step) : stretchMs
        const stalls = shortestMs > maxStretchMs ? [stallProblem(step, shortestMs)] : []
        for (const problem of [...problems, ...stalls]) findings.push({ ...problem, input })
      }
      return findings
    },
    [Symbol.asyncDispose]: () => targets[Symbol.asyncDispose](),
  }
}

/** Shrinking may have removed required fields; such steps are left out. */
function parseSteps(input: Json): readonly Step[] {
  const { steps = [] } = (input ?? {}) as { readonly steps?: readonly Partial<Record<string, unknown>>[] }
  const required: Readonly<Record<string, readonly string[]>> = {
    http: ['route', 'caller', 'method', 'path', 'headers'],
    raw: ['bytes'],
    tool: ['name', 'arguments'],
    cli: ['args'],
  }
  return steps.filter((step) =>
    required[String(step.surface)]?.every((name) => step[name] !== undefined && step[name] !== ''),
  ) as unknown as readonly Step[]
}

/** Grammar-based fuzzing of all routes, tools and commands. */
export const fuzz: Part = {
  name: 'fuzz',
  unit: 'inputs',
  description: 'generated and changed requests to every route, MCP tool and command',
  fullCount: 1_000_000,
  sliceCount: 96,
  maxWorkers: 16,
  maxShrinkTries: 250,
  run,
  openReplayer,
}

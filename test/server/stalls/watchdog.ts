import { Session } from 'node:inspector'
import { performance } from 'node:perf_hooks'

/**
 * Loaded into a server process with `--import`. While armed, it compares the processor time of the main thread at every
 * millisecond of its event loop: the largest difference is, within a millisecond or two, the longest time during which
 * no other request could be served, whatever else the machine was doing.
 */
export type WatchdogCommand = { readonly watchdog: 'arm'; readonly profile: boolean } | { readonly watchdog: 'report' }
export type WatchdogReport = {
  /** Processor time of the longest turn of the event loop. */
  readonly longestMs: number
  /** Time without a turn of over `quietTurnMs`. */
  readonly quietForMs: number
  /** Functions that used most of the longest turn, with their share in milliseconds. */
  readonly hotSpots: readonly string[]
}

const quietTurnMs = 3
const maxHotSpots = 12
const state = { armed: false, longestMs: 0, from: 0, to: 0, lastBusyAt: 0, last: 0, lastAt: 0 }
let session: Session | undefined

const threadCpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

function turn(): void {
  if (!state.armed) return
  const [now, at] = [threadCpuMs(), performance.now()]
  const spent = now - state.last
  if (spent > quietTurnMs) state.lastBusyAt = at
  if (spent > state.longestMs) Object.assign(state, { longestMs: spent, from: state.lastAt, to: at })
  state.last = now
  state.lastAt = at
  setTimeout(turn, 1)
}

function arm(profile: boolean): void {
  const at = performance.now()
  Object.assign(state, { longestMs: 0, from: at, to: at, lastBusyAt: at, last: threadCpuMs(), lastAt: at })
  if (profile) {
    session = new Session()
    session.connect()
    session.post('Profiler.enable')
    session.post('Profiler.setSamplingInterval', { interval: 500 })
    session.post('Profiler.start')
    Object.assign(state, { last: threadCpuMs(), lastAt: performance.now() })
  }
  if (!state.armed) setTimeout(turn, 1)
  state.armed = true
}

/** Sums the samples of the longest turn by the functions of this project that were running or waiting for others. */
function findHotSpots(): readonly string[] {
  const spots = new Map<string, number>()
  session?.post('Profiler.stop', (_error, { profile }) => {
    const { nodes, samples = [], timeDeltas = [], startTime } = profile
    const byId = new Map(nodes.map((node) => [node.id, node]))
    const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)))
    // The profiler's clock is in microseconds, with the origin of the monotonic clock of the process.
    const origin = Number(process.hrtime.bigint() / 1_000n) - performance.now() * 1_000
    let at = startTime
    samples.forEach((sample, index) => {
      const delta = timeDeltas[index] ?? 0
      at += delta
      const now = (at - origin) / 1_000
      if (now < state.from || now > state.to) return
      const seen = new Set<string>()
      let isSelf = true
      for (let id: number | undefined = sample; id !== undefined; id = parents.get(id)) {
        const frame = byId.get(id)?.callFrame
        const file = frame?.url.split('/src/')[1]
        const name = `${frame?.functionName || '(anonymous)'} ${file ?? (isSelf ? '-' : '')}:${frame?.lineNumber ?? 0}`
        if ((file !== undefined || isSelf) && !seen.has(name)) spots.set(name, (spots.get(name) ?? 0) + delta / 1_000)
        seen.add(name)
        isSelf = false
      }
    })
    session?.disconnect()
    session = undefined
  })
  return [...spots]
    .sort((a, b) => b[1] - a[1])
    .slice(0, maxHotSpots)
    .map(([name, ms]) => `${ms.toFixed(0)} ms ${name}`)
}

process.on('message', (command: WatchdogCommand) => {
  if (command.watchdog === 'arm') arm(command.profile)
  else {
    const { longestMs, lastBusyAt } = state
    const quietForMs = performance.now() - lastBusyAt
    const report: WatchdogReport = { longestMs, quietForMs, hotSpots: quietForMs > 100 ? findHotSpots() : [] }
    if (quietForMs > 100) state.armed = false
    process.send?.(report)
    return
  }
  process.send?.({ longestMs: 0, quietForMs: 0, hotSpots: [] } satisfies WatchdogReport)
})
// The server must not outlive a probe that was killed.
process.on('disconnect', () => process.exit(1))

// Outcomes of the soak's requests: tells the failures that the soak provokes from all others.

/** Part of a request that its outcome is counted by. */
export type RequestOutcome = {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly body: string
  /** Failures that the request provokes, or that limits of the server allow; empty for all others. */
  readonly expected: readonly number[]
}

const maxErrorCharacters = 200

/** Counts outcomes by status class, and failures by route, status and error. */
export class Outcomes {
  /** Requests by status class, and requests that clients aborted or that broke off. */
  readonly counts: Record<string, number> = {}
  private readonly failures = { expected: new Map<string, number>(), unexpected: new Map<string, number>() }

  /** Number of failures that nothing provoked. */
  get unexpected(): number {
    return [...this.failures.unexpected.values()].reduce((sum, count) => sum + count, 0)
  }

  addResponse({ method, path, status, body, expected }: RequestOutcome): void {
    this.count(`${Math.floor(status / 100)}xx`)
    if (status < 400) return
    this.addFailure(`${method} ${toRoute(path)} ${status} ${readErrorCode(body)}`, expected.includes(status))
  }

  /** Adds a failure without a status: a request that broke off, or a tool without a result. */
  addFailure(name: string, isExpected: boolean): void {
    const failures = isExpected ? this.failures.expected : this.failures.unexpected
    const key = normalize(name)
    failures.set(key, (failures.get(key) ?? 0) + 1)
  }

  count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }

  print(): void {
    for (const [kind, failures] of Object.entries(this.failures)) {
      console.log(`${kind} failures: ${failures.size === 0 ? 'none' : ''}`)
      for (const [name, count] of [...failures].sort(([, left], [, right]) => right - left))
        console.log(`${String(count).padStart(8)}  ${name}`)
    }
  }
}

/** Replaces ids in an error text, so that equal errors are counted together. */
const normalize = (text: string): string =>
  text
    .replaceAll(/session_\w+/g, 'session_ID')
    .replaceAll(/\bt\d+:s\d+/g, 't0:s0')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
    .slice(0, maxErrorCharacters)

/** Replaces the changing parts of a path. */
const toRoute = (path: string): string =>
  path
    .replace(/\?.*/, '')
    .replace(/\/t\d+:s\d+/, '/:key')
    .replace(/\/scopes\/t\d+/, '/scopes/:scope')
    .replace(/\/(knowledge|files)\/.+/, '/$1/:id')

function readErrorCode(body: string): string {
  try {
    const { error } = JSON.parse(body) as { error?: { code?: unknown; type?: unknown; message?: unknown } }
    return error === undefined ? body : `${error.code ?? error.type}: ${error.message}`
  } catch {
    return body
  }
}

import { vi } from 'vitest'

/** A clock for timeouts that the test advances. */
export type FakeTimeouts = Disposable & {
  readonly advance: (ms: number) => void
}

/** Replaces `setTimeout` and `clearTimeout` until disposed; sockets and fetch keep working. */
export function useFakeTimeouts(): FakeTimeouts {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  return {
    advance: (ms) => void vi.advanceTimersByTime(ms),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  }
}

import { type Inputs, useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './api/client.ts'
import type { LiveEvent } from './api/events.ts'
import { useApp } from './appContext.ts'

/** Data of the server. While it is read again, and after a failure, the last data stays. */
export type Resource<T> = {
  readonly data: T | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  reload(): void
}

const reloadDelayMs = 150
const retryDelayMs = 2_000

/**
 * Reads data when `inputs` change, when a live event concerns it, and again while the server cannot be reached.
 *
 * @param isConcerned tells whether a live event changes the data
 */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: Inputs,
  isConcerned: (event: LiveEvent) => boolean = () => false,
): Resource<T> {
  const { live } = useApp()
  const [version, setVersion] = useState(0)
  const [state, setState] = useState<Omit<Resource<T>, 'reload'>>({
    data: undefined,
    error: undefined,
    isLoading: true,
  })
  const reload = useCallback(() => setVersion((current) => current + 1), [])
  const loadedInputs = useRef<Inputs>([])

  useEffect(() => {
    const abort = new AbortController()
    let retry: ReturnType<typeof setTimeout> | undefined
    const isSame =
      loadedInputs.current.length === inputs.length &&
      inputs.every((input, index) => input === loadedInputs.current[index])
    loadedInputs.current = inputs
    // Data of another subject must not be shown.
    setState((last) => ({
      data: isSame ? last.data : undefined,
      error: isSame ? last.error : undefined,
      isLoading: true,
    }))
    load(abort.signal).then(
      (data) => {
        if (!abort.signal.aborted) setState({ data, error: undefined, isLoading: false })
      },
      (cause: unknown) => {
        if (abort.signal.aborted) return
        const error = cause instanceof ApiError ? cause : new ApiError(0, String(cause))
        setState(({ data }) => ({ data, error, isLoading: false }))
        if (error.status === 0 || error.status === 503) retry = setTimeout(reload, retryDelayMs)
      },
    )
    return () => {
      abort.abort()
      clearTimeout(retry)
    }
  }, [...inputs, version])

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const unsubscribe = live.subscribe((event) => {
      if (event.type !== 'reset' && !isConcerned(event)) return
      clearTimeout(timer)
      timer = setTimeout(reload, reloadDelayMs)
    })
    return () => {
      clearTimeout(timer)
      unsubscribe()
    }
  }, [live, ...inputs])

  return { ...state, reload }
}

/** The current time, updated every `intervalMs`. */
export function useNow(intervalMs: number): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), intervalMs)
    return () => clearInterval(timer)
  }, [intervalMs])
  return now
}

/** A value that follows `value` once it has not changed for `delayMs`. */
export function useDelayed<T>(value: T, delayMs: number): T {
  const [delayed, setDelayed] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), delayMs)
    return () => clearTimeout(timer)
  }, [value, delayMs])
  return delayed
}

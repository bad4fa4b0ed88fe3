/** The result of some work, unless it is told to stop first, whether it listens or not. */
export function before<T>(stop: AbortSignal, work: Promise<T>): Promise<T> {
  const stopped = new Promise<never>((_, reject) => {
    if (stop.aborted) reject(stop.reason)
    stop.addEventListener('abort', () => reject(stop.reason), { once: true })
  })
  return Promise.race([work, stopped])
}

/** Lets other requests run. `setImmediate` returns after pending input and output were handled. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resume) => setImmediate(resume))

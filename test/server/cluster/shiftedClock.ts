/** Preloaded into a server: its system clock is wrong by `CLOCK_SHIFT_MS`. Timers and the steady clock are right. */
const shiftMs = Number(process.env.CLOCK_SHIFT_MS)
const systemNow = Date.now
Date.now = () => systemNow() + shiftMs
globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [target.now()] : args, newTarget),
})

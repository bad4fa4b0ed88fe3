import { isCampaign, seed } from '../context/campaign.ts'

/** Number of injected faults: enough to verify the guarantees in the regular suite, many more in a campaign. */
export const runCounts = isCampaign
  ? { crashes: 320, powerLosses: 1_500, syncErrors: 60, fullDisks: 60, steps: 200 }
  : { crashes: 3, powerLosses: 8, syncErrors: 2, fullDisks: 2, steps: 20 }

export const testTimeoutMs = isCampaign ? 3_600_000 : 240_000

/** Added to failure messages, so that the run can be repeated. */
export const seedHint = `THREADKEEP_SEED=${seed}`

export { seed }

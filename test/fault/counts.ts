import { campaign, seed } from '../context/campaign.ts'

/** How much is tried of every fault: enough to prove the promise in the ordinary suite, and to look for new faults in a campaign. */
export const counts = campaign
  ? { crashes: 320, losses: 1_500, syncErrors: 60, fullDisks: 60, steps: 200 }
  : { crashes: 40, losses: 120, syncErrors: 10, fullDisks: 10, steps: 30 }

/** How long a test may take. */
export const patience = campaign ? 3_600_000 : 240_000

/** What stands in the message of a failed check, so that it can be tried again. */
export const repeatedWith = `THREADKEEP_SEED=${seed}`

export { seed }

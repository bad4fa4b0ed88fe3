import type { Expectations } from '../score.ts'
import { bank } from './bank.ts'
import { refund } from './refund.ts'
import { telecom } from './telecom.ts'
import { toolRun } from './toolRun.ts'

/** Lists of the conversations, by the name of the transcript. */
export const conversations: Readonly<Record<string, Expectations>> = { refund, telecom, bank, toolRun }

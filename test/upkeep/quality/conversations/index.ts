import type { Expectations } from '../score.ts'
import { bank } from './bank.ts'
import { boutique } from './boutique.ts'
import { debugging } from './debugging.ts'
import { design } from './design.ts'
import { health } from './health.ts'
import { refund } from './refund.ts'
import { telecom } from './telecom.ts'
import { tesis } from './tesis.ts'
import { toolRun } from './toolRun.ts'
import { trip } from './trip.ts'
import { umzug } from './umzug.ts'
import { wedding } from './wedding.ts'

/** Lists of the conversations, by the name of the transcript. */
export const conversations: Readonly<Record<string, Expectations>> = {
  refund,
  telecom,
  bank,
  toolRun,
  design,
  debugging,
  trip,
  wedding,
  health,
  umzug,
  boutique,
  tesis,
}

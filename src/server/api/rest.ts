import type { Handlers } from '../http/requestContext.ts'
import { conversations } from './conversations.ts'
import { files } from './files.ts'
import { forget } from './forget.ts'
import { knowledge } from './knowledge.ts'
import { operations } from './operations.ts'
import { receipts } from './receipts.ts'
import { search } from './search.ts'
import { sessions } from './sessions.ts'
import { transcript } from './transcript.ts'

/** Everything that is no request for a model. */
export const resting: Handlers = {
  ...sessions,
  ...transcript,
  ...receipts,
  ...knowledge,
  ...search,
  ...files,
  ...forget,
  ...conversations,
  ...operations,
}

import type { Handlers } from '../http/requestContext.ts'
import { conversationRoutes } from './conversations.ts'
import { fileRoutes } from './files.ts'
import { forgetRoutes } from './forget.ts'
import { knowledgeRoutes } from './knowledge.ts'
import { operatorRoutes } from './operator.ts'
import { receiptRoutes } from './receipts.ts'
import { searchRoutes } from './search.ts'
import { sessionRoutes } from './sessions.ts'
import { transcriptRoutes } from './transcript.ts'

/** Routes of the management API, OpenAI's conversations, and the operator's endpoints. */
export const apiRoutes: Handlers = {
  ...sessionRoutes,
  ...transcriptRoutes,
  ...receiptRoutes,
  ...knowledgeRoutes,
  ...searchRoutes,
  ...fileRoutes,
  ...forgetRoutes,
  ...conversationRoutes,
  ...operatorRoutes,
}

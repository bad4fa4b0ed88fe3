import type { Handler, Handlers } from '../http/requestContext.ts'
import { conversationRoutes } from './conversations.ts'
import { eventRoutes } from './events.ts'
import { fileRoutes } from './files.ts'
import { forgetRoutes } from './forget.ts'
import { graphRoutes } from './graph.ts'
import { homeRoutes } from './home.ts'
import { checkNoBody } from './input.ts'
import { inspectorRoutes } from './inspector.ts'
import { knowledgeRoutes } from './knowledge.ts'
import { operationsRoutes } from './operations.ts'
import { operatorRoutes } from './operator.ts'
import { portableRoutes } from './portable.ts'
import { receiptRoutes } from './receipts.ts'
import { replayRoutes } from './replay.ts'
import { searchRoutes } from './search.ts'
import { sessionRoutes } from './sessions.ts'
import { transcriptRoutes } from './transcript.ts'

/** Routes of the management API, OpenAI's conversations, and the operator's endpoints. */
export const apiRoutes: Handlers = withBodyCheck({
  ...sessionRoutes,
  ...transcriptRoutes,
  ...receiptRoutes,
  ...knowledgeRoutes,
  ...searchRoutes,
  ...fileRoutes,
  ...forgetRoutes,
  ...conversationRoutes,
  ...operatorRoutes,
  ...homeRoutes,
  ...inspectorRoutes,
  ...eventRoutes,
  ...portableRoutes,
  ...replayRoutes,
  ...graphRoutes,
  ...operationsRoutes,
})

/** Refuses the body of requests under `/api` that take none. */
function withBodyCheck(handlers: Handlers): Handlers {
  const withCheck = Object.entries(handlers).map(([name, handler]): [string, Handler] => {
    if (!/^(?:GET|DELETE) \/api\/|^POST .*\/(?:restore|approve)$/.test(name)) return [name, handler]
    const checked: Handler = async (context) => {
      checkNoBody(context)
      return handler(context)
    }
    return [name, checked]
  })
  return Object.fromEntries(withCheck)
}

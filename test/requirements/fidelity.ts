import type { Row } from './row.ts'

const source = 'Threadkeep'

export const fidelity: readonly Row[] = [
  {
    id: 'F-01',
    source,
    behaviour:
      "A client's messages reach the upstream deep-equal and in the same order, plus declared additions, whenever they fit. A stored copy never replaces them.",
    status: 'kept',
    in: [
      'src/server/turn/outgoingPrompt.ts',
      'src/server/protocols/chat.ts',
      'src/server/protocols/messages.ts',
      'src/server/protocols/responses.ts',
    ],
  },
  {
    id: 'F-02',
    source,
    behaviour:
      "Each message keeps its original provider-shaped payload and the client's id. A turn sent in full to its own protocol is that payload.",
    status: 'kept',
    in: ['src/domain/payload.ts', 'src/server/protocols/payloads.ts', 'src/server/turn/storeMessages.ts'],
  },
  {
    id: 'F-03',
    source,
    behaviour:
      'A message that the upstream refused (4xx) is in no later prompt and not in the transcript. Accepted messages are never lost.',
    status: 'kept',
    in: ['src/server/turn/storeMessages.ts', 'src/server/turn/branches.ts'],
  },
  {
    id: 'F-04',
    source,
    behaviour:
      'Full clients (resend a conversation) and thin clients (send only new messages) are told apart. A compacted, edited or disjoint conversation is a branch and never re-expanded. Auxiliary requests are not stored.',
    status: 'kept',
    in: [
      'src/server/turn/reconcileHistory.ts',
      'src/server/turn/sessionActivity.ts',
      'src/server/turn/auxiliaryRequest.ts',
    ],
  },
  {
    id: 'F-05',
    source,
    behaviour: 'Endpoints, headers and query parameters unknown to the server are forwarded to the upstream.',
    status: 'kept',
    in: [
      'src/server/forward.ts',
      'src/server/auth/upstreamHeaders.ts',
      'src/server/upstreams/upstream.ts',
      'src/server/upstreams/pool.ts',
    ],
  },
]

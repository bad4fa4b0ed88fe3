import { type Handlers, send } from '../exchange.ts'
import { readiness } from '../watch/ready.ts'

/** Everything that is no request for a model. */
export const resting: Handlers = {
  'GET /healthz': async ({ house, client }) => {
    const { ready: _ready, ...health } = readiness(await house.state())
    send(client.response, 200, health)
  },
}

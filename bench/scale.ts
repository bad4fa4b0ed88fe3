// PostgreSQL and Redis with many sessions and several servers.
import { parseArgs } from 'node:util'
import { startPostgres } from '../test/support/postgresServer.ts'
import { startRedisServer } from '../test/support/redisServer.ts'
import { measurePeers } from './scale/peers.ts'
import { measureQuotas } from './scale/quotas.ts'
import { countRoundTrips } from './scale/roundTrips.ts'
import { measureServers } from './scale/servers.ts'
import { measureSize } from './scale/size.ts'

const help = `Usage: npm run bench -- scale [options]

Starts a PostgreSQL and a Redis server in temporary folders and measures:

  trips     round trips of a turn (counted)
  cpu       CPU per request with one and with four servers
  size      bytes per message in PostgreSQL
  quotas    sessions that fit into a small Redis, and servers on a PostgreSQL with few connections
  peers     append and read of the last 50 messages, beside other packages (npm --prefix bench ci)

  --only NAME       only this part; repeatable
  --sessions N      sessions of the part size (default 100,000)
  --messages N      messages per session of the part size (default 20)
  --turns N         turns of each server per measurement of the part cpu (default 500)
  --rate N          turns per second of each server in the part cpu (default 20; 0 for as many as it answers)
  --help            print this text`

const text = { type: 'string' } as const
const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    only: { type: 'string', multiple: true },
    sessions: text,
    messages: text,
    turns: text,
    rate: text,
    help: { type: 'boolean' },
  },
})
const numberOf = (value: string | undefined, byDefault: number, min = 1): number => {
  const number = value === undefined ? byDefault : Number(value.replaceAll(',', ''))
  if (Number.isSafeInteger(number) && number >= min) return number
  console.error(`${value} is not a whole number of at least ${min}.\n\n${help}`)
  process.exit(2)
}

if (values.help) console.log(help)
else {
  const postgres = await startPostgres()
  const redis = await startRedisServer()
  try {
    const servers = { postgres, redis }
    const parts: Readonly<Record<string, () => Promise<void>>> = {
      trips: () => countRoundTrips(servers),
      cpu: () => measureServers(postgres, { turns: numberOf(values.turns, 500), rate: numberOf(values.rate, 20, 0) }),
      size: () => measureSize(postgres, numberOf(values.sessions, 100_000), numberOf(values.messages, 20)),
      quotas: () => measureQuotas(servers),
      peers: () => measurePeers(postgres),
    }
    for (const name of values.only ?? Object.keys(parts)) {
      const run = parts[name]
      if (run === undefined) throw new Error(`There is no part ${name}. See npm run bench -- scale --help`)
      await run()
    }
  } finally {
    await redis.remove()
    await postgres.remove()
  }
}

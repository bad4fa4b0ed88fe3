import { connectClient } from './clientTransport.ts'
import { toMemoryError } from './errors.ts'
import { RestTransport } from './restTransport.ts'
import type { RedisTransport } from './transport.ts'
import type { RedisAddress } from './url.ts'

/** Connects to the servers of an address. Rejects with `busy` if they cannot be reached within the time-out. */
export async function openTransport(address: RedisAddress): Promise<RedisTransport> {
  const { target, shown, timeoutMs } = address
  if (target.kind === 'rest') return new RestTransport(shown, target, timeoutMs)
  try {
    return await connectClient(address, target)
  } catch (error) {
    throw toMemoryError(error, shown)
  }
}

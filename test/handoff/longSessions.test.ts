import { expect } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { Handoff } from '../../src/handoff/handoff.ts'
import { openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileTexts } from '../server/stalls/hostileTexts.ts'
import { countTurns, useSlowClock } from '../support/slowClock.ts'

verifies(
  'R-03',
  'save › of a long conversation › lets other work run while it is summarised and searched',
  async () => {
    await using memory = await openMemory({ profile: 'handoff', store: 'ram:', upkeep: false })
    const graph = await openGraph('ram:')
    const handoff = new Handoff({ clock: () => 0, memory, graph })
    using _ = useSlowClock()
    const conversationContext = hostileTexts.code?.(12_000) ?? ''
    // Without pauses in the summaries there are 33 turns, and without those in the search for items 61.
    const { turns } = await countTurns(handoff.save('billing', { conversationContext }))
    expect(turns).toBeGreaterThan(70)
    await handoff.close()
    await graph.close()
  },
)

import type { Rung } from '../domain/profile.ts'

export const day = 86_400_000

export const whole: readonly Rung[] = [{ as: 'whole' }]
/** For what must be in, however short. */
export const atAnyPrice: readonly Rung[] = [{ as: 'whole' }, { as: 'json' }, { as: 'squeeze' }, { as: 'fit' }]

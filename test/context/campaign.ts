/** A campaign searches for new failures for up to an hour; the ordinary suite checks the same properties in a minute. */
export const isCampaign = process.env.THREADKEEP_CAMPAIGN !== undefined

/** Fixed in the ordinary suite. In a campaign, THREADKEEP_SEED or a new one for each run. */
export const seed = isCampaign ? Number(process.env.THREADKEEP_SEED ?? Date.now() % 2 ** 31) : 20_261_115

/** Timeout of a property test in milliseconds. */
export const propertyTimeoutMs = isCampaign ? 3_600_000 : 120_000

/** The configuration of a command that fails before it asks. */
export const client = { getTransaction: () => Promise.reject(new Error('not asked')) };

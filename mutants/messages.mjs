import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** No contract fixes the words of a sentence, so a text of several words is not mutated. */
function isSentence({ node }) {
  if (node.type === 'StringLiteral') return /\s/.test(node.value.trim());
  return node.type === 'TemplateLiteral' && node.quasis.some(({ value }) => /\s/.test(value.raw.trim()));
}

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'messages', {
    shouldIgnore: (path) => (isSentence(path) ? 'The words of a message are no contract.' : undefined),
  }),
];

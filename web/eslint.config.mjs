// SPDX-License-Identifier: GPL-2.0-or-later
//
// What eslint checks in the report's modules; tsc knows what is defined.

export default [
  {
    files: ['*.js'],
    languageOptions: { ecmaVersion: 2022, sourceType: 'module' },
    rules: {
      'array-callback-return': 'error',
      'consistent-return': 'error',
      'eqeqeq': ['error', 'always', { null: 'ignore' }],
      'max-depth': ['error', 4],
      'max-len': ['error', { code: 140 }],
      'max-lines-per-function': ['error', { max: 100, skipComments: true }],
      'no-constant-binary-expression': 'error',
      'no-dupe-keys': 'error',
      'no-else-return': 'error',
      'no-fallthrough': 'error',
      'no-implied-eval': 'error',
      'no-eval': 'error',
      'no-new-func': 'error',
      'no-restricted-properties': ['error',
        ...['innerHTML', 'outerHTML', 'insertAdjacentHTML'].map((property) =>
          ({ property, message: 'Names in profiles are not trusted.' }))],
      'no-self-compare': 'error',
      'no-shadow': 'error',
      'no-unreachable': 'error',
      'no-unused-expressions': ['error', { allowShortCircuit: true, allowTernary: true }],
      'no-unused-vars': 'error',
      'no-useless-concat': 'error',
      'no-var': 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
      'quotes': ['error', 'single', { avoidEscape: true, allowTemplateLiterals: true }],
      'semi': ['error', 'always'],
    },
  },
];

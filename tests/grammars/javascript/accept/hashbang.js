#!/usr/bin/env node
"use strict"
main()

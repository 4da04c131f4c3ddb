const
